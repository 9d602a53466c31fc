#pragma once
#include <string>

#include "formats/web/web_folder.h"
#include "web/browser.h"

namespace rlx::test {

/// Pages of models, with what rlx.js exports.
class PagesInBrowser : public BrowserTest {
 protected:
  /// What `script` makes of `given`, which it sees by that name beside all that rlx.js exports: the value that it returns.
  json::Value result_of(const std::string& script, const json::Value& given) {
    write_text(folder_ / "rlx.js", web_script());
    write_text(folder_ / "open.html", fmt::format(R"(<!doctype html><meta charset="utf-8"><body><script type="module">
import * as rlx from "/rlx.js";
const put = (path, body) => fetch(path, {{ method: "PUT", body }});
const run = async (given) => {{ {} }};
try {{
  await put("/result.json", JSON.stringify(await run({})));
  await put("/done", "");
}} catch (error) {{
  await put("/done", error.stack);
}}
</script>)",
                                                  script, given.dump()));
    open_page(folder_.path(), "open.html");
    return json::read_file(folder_ / "result.json");
  }
};

}  // namespace rlx::test
