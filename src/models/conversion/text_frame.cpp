#include "models/conversion/text_frame.h"

#include <cstddef>

#include <fmt/format.h>

namespace rlx {
namespace {

std::optional<std::int64_t> special_id(const JsonField& piece, const JsonField& processor) {
  const auto special = piece.find("SpecialToken");
  if (!special) return std::nullopt;
  const auto ids = processor.at("special_tokens").at(special->at("id").as_string()).at("ids").items();
  if (ids.size() != 1) special->refuse("stands for {} ids (allowed: 1)", ids.size());
  return ids[0].as_id();
}

/// The id of a token that stands beside it: ["[CLS]", 101].
std::int64_t paired_id(const JsonField& token) {
  const auto pair = token.items();
  if (pair.size() != 2) token.refuse("{} parts (allowed: 2, a token and its id)", pair.size());
  return pair[1].as_id();
}

void read_template(const JsonField& processor, TextFrame& frame, std::vector<std::string>& losses) {
  const auto single = processor.at("single").items(), pair = processor.at("pair").items();
  if (!single.empty()) frame.begin = special_id(single.front(), processor), frame.end = special_id(single.back(), processor);
  for (std::size_t i = 1; i + 1 < single.size(); ++i)
    if (const auto special = single[i].find("SpecialToken"))
      losses.push_back(fmt::format("{} (one of several at an end of texts)", special->at("id").as_string()));
  if (frame.begin && frame.end && pair.size() == 6) frame.between = special_id(pair[3], processor);
}

void read_processor(const JsonField& processor, TextFrame& frame, std::vector<std::string>& losses) {
  const std::string kind = processor.kind();
  if (kind == "Sequence")
    for (const JsonField& part : processor.at("processors").items()) read_processor(part, frame, losses);
  if (kind == "BertProcessing" || kind == "RobertaProcessing") {
    frame.begin = paired_id(processor.at("cls")), frame.end = paired_id(processor.at("sep"));
    if (kind == "RobertaProcessing") frame.between = frame.end;
  }
  if (kind == "TemplateProcessing") read_template(processor, frame, losses);
}

}  // namespace

TextFrame read_text_frame(const JsonField& root, std::vector<std::string>& losses) {
  TextFrame frame;
  if (const auto processor = root.find("post_processor")) read_processor(*processor, frame, losses);
  return frame;
}

}  // namespace rlx
