// Messages of Protocol Buffers are the bytes that its documentation of the encoding shows.
#include "base/files/protobuf_writer.h"

#include <gtest/gtest.h>

namespace rlx::test {
namespace {

TEST(ProtobufWriter, WritesTheDocumentedBytes) {
  EXPECT_EQ(ProtobufWriter().integer(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufWriter().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtobufWriter().message(3, ProtobufWriter().integer(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  const std::int64_t list[] = {3, 270, 86942};
  EXPECT_EQ(ProtobufWriter().packed(6, list).bytes(), "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
  EXPECT_EQ(ProtobufWriter().entry(7, "k", ProtobufWriter().integer(1, 1)).bytes(), "\x3a\x07\x0a\x01k\x12\x02\x08\x01");
  EXPECT_EQ(ProtobufWriter().number(1, -2.5F).bytes(), std::string("\x0d\x00\x00\x20\xc0", 5));
}

TEST(ProtobufWriter, AppendsFieldsBehindThoseThatAreThere) {
  ProtobufWriter message = ProtobufWriter().text(1, "a");
  message.append(ProtobufWriter().text(1, "b"));
  EXPECT_EQ(message.bytes(),
            "\x0a\x01"
            "a\x0a\x01"
            "b");
}

}  // namespace
}  // namespace rlx::test
