// Files of models: written in other forms, and compared with what others recorded.
#include "rlx/convert.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "progress.h"
#include "released.h"
#include "rlx/verify.h"

namespace rlx::python {

bool is_interrupted() {
  check_signals();
  return false;
}

std::function<void(std::size_t, std::size_t)> progress_of(const nb::object& function) {
  return [given = nb::handle(function)](std::size_t done, std::size_t total) {
    is_interrupted();
    if (given.is_none()) return;
    const Held held;
    given(done, total);
  };
}

namespace {

using Path = std::filesystem::path;
using TensorTypes = std::vector<std::pair<std::string, std::string>>;

nb::dict report_of(const QuantizeReport& report) {
  nb::list types;
  for (const QuantizedType& type : report.types) {
    nb::dict row;
    row["type"] = type.type, row["tensors"] = type.tensors, row["values"] = type.values, row["bytes"] = type.bytes;
    row["relative_error"] = type.relative_error();
    types.append(row);
  }
  nb::dict row;
  row["types"] = types, row["fallbacks"] = report.fallbacks, row["unweighted"] = report.unweighted, row["losses"] = report.losses;
  row["source_bytes"] = report.source_bytes, row["bytes"] = report.bytes, row["files"] = report.files;
  return row;
}

template <auto write>
nb::dict written(const Path& source, const Path& out, const std::string& type, const std::optional<Path>& importance, bool pure,
                 TensorTypes tensor_types, const std::optional<Path>& base, int threads, nb::handle dtype, const nb::object& progress) {
  ConvertOptions options{.type = type,
                         .importance = importance.value_or(Path()),
                         .pure = pure,
                         .tensor_types = std::move(tensor_types),
                         .base = base.value_or(Path()),
                         .threads = threads};
  if (!dtype.is_none()) options.dtype = as_dtype(dtype);
  options.progress = progress_of(progress);
  QuantizeReport report;
  {
    const Released released;
    report = write(source, out, options);
  }
  return report_of(report);
}

nb::list verified(const Path& folder, const std::optional<Path>& model, const std::optional<Session>& given) {
  std::vector<VerifiedTensor> tensors;
  {
    const Released released;
    const Session session = given ? *given : Session();
    tensors = model ? verify_model(*model, folder, session) : verify_folder(folder, session);
  }
  nb::list rows;
  for (const VerifiedTensor& tensor : tensors) {
    nb::dict row;
    row["name"] = tensor.name, row["shape"] = tensor.shape, row["compared"] = tensor.compared;
    row["difference"] = tensor.difference, row["allowed"] = tensor.allowed, row["passed"] = tensor.passed();
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_model_files(nb::module_& m) {
  const auto define = [&](const char* name, auto function) {
    m.def(name, function, nb::arg("source"), nb::arg("out"), nb::arg("type") = "", nb::arg("importance") = nb::none(),
          nb::arg("pure") = false, nb::arg("tensor_types") = TensorTypes(), nb::arg("base") = nb::none(), nb::arg("threads") = 0,
          nb::arg("dtype") = nb::none(), nb::arg("progress") = nb::none());
  };
  define("convert", &written<&convert>);
  define("quantize", &written<&quantize>);
  m.def("verify", &verified, nb::arg("folder"), nb::arg("model") = nb::none(), nb::arg("session") = nb::none(),
        "How far a model is from what another implementation recorded in the folder's expected.safetensors: a row for each output.");
}

}  // namespace rlx::python
