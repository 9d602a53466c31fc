#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "base/names.h"
#include "formats/file_size_limit.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;
using test::FileSizeLimit;
using test::TemporaryFolder;

std::string_view text_of(const MappedFile& file) { return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}; }

TEST(MappedFile, GivesTheBytesAndKeepsThemWhenMoved) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "abc");
  test::write_text(folder / "b", "de");
  MappedFile first = MappedFile::open(folder / "a");
  const std::byte* address = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  EXPECT_EQ(text_of(second), "abc");
  second = MappedFile::open(folder / "b");
  EXPECT_EQ(text_of(second), "de");
}

TEST(MappedFile, OutlivesTheNameOfTheFile) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "abc");
  const MappedFile file = MappedFile::open(folder / "a");
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(text_of(file), "abc");
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  test::write_text(folder / "empty", "");
  EXPECT_TRUE(MappedFile::open(folder / "empty").bytes().empty());
}

TEST(MappedFile, NamesTheFileAndTheReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { MappedFile::open(folder / "none"); }), (folder / "none").string() + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile::open(folder.path()); }), folder.path().string() + ": is a directory, a file is needed");
}

TEST(MappedFile, RefusesPipesWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(error_of([&] { MappedFile::open(folder / "pipe"); }).find("not a regular file"), std::string::npos);
}

TEST(FileWriter, ShowsNothingBeforeCommit) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "old");
  {
    FileWriter writer(folder / "a");
    writer.write("new ");
    writer.write("content");
    EXPECT_EQ(test::read_text(folder / "a"), "old");
    writer.commit();
  }
  EXPECT_EQ(test::read_text(folder / "a"), "new content");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(FileWriter, WithoutCommitNothingChangesAndNothingStays) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "old");
  {
    FileWriter(folder / "a").write("half");
  }
  {
    FileWriter(folder / "b").write("half");
  }
  EXPECT_EQ(test::read_text(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(FileWriter, AFullDiskKeepsTheOldFile) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(error_of([&] { write_file(folder / "a", std::string(5000, 'x')); }),
              (folder / "a").string() + ": cannot write: File too large");
  }
  EXPECT_EQ(test::read_text(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(FileWriter, KeepsPermissionsOfAnExistingFile) {
  const TemporaryFolder folder;
  test::write_text(folder / "a", "old");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0640), 0);
  write_file(folder / "a", "new");
  EXPECT_EQ(static_cast<int>(std::filesystem::status(folder / "a").permissions()), 0640);
  EXPECT_EQ(test::read_text(folder / "a"), "new");
}

TEST(FileWriter, WritesThroughALinkThatStays) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "text");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(test::read_text(folder / "real"), "text");
}

TEST(FileWriter, RefusesTargetsThatCannotBeReplaced) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of([&] { write_file(folder.path(), "x"); }).find("is a directory"), std::string::npos);
  EXPECT_NE(error_of([&] { write_file("/dev/null", "x"); }).find("not a regular file"), std::string::npos);
  EXPECT_EQ(error_of([&] { write_file(folder / "none/a", "x"); }),
            (folder / "none/a").string() + ": cannot create: No such file or directory");
  EXPECT_TRUE(
      error_of([] { write_file("/proc/rlx-test", "x"); }).starts_with("/proc/rlx-test: cannot create: "));  // no one may write there
  EXPECT_EQ(folder.entries(), 0);
}

TEST(FileWriter, IsFinishedAfterCommit) {
  const TemporaryFolder folder;
  FileWriter writer(folder / "a");
  writer.commit();
  EXPECT_THROW(writer.write("x"), InternalError);
  EXPECT_THROW(writer.commit(), InternalError);
}

TEST(FileWriter, SeveralAppearTogetherOrNotAtAll) {
  const TemporaryFolder folder;
  {
    std::vector<FileWriter> writers;
    for (const char* name : {"a", "b"}) writers.emplace_back(folder / name);
    for (FileWriter& writer : writers) writer.write("text");
    writers[0].finish();
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    FileWriter::commit_all(writers);
  }
  EXPECT_EQ(test::read_text(folder / "a") + test::read_text(folder / "b"), "texttext");
  EXPECT_EQ(folder.entries(), 2);
  {
    std::vector<FileWriter> writers;
    for (const char* name : {"c", "d"}) writers.emplace_back(folder / name);
    std::filesystem::create_directories(folder / "c" / "in the way");
    EXPECT_NE(error_of([&] { FileWriter::commit_all(writers); }).find("cannot write"), std::string::npos);
  }
  EXPECT_EQ(folder.entries(), 3) << "a, b and the folder c";
}

TEST(FileWriter, TemporaryFilesCanBeRemovedAtOnce) {
  const TemporaryFolder folder;
  FileWriter writer(folder / "a");
  writer.write("x");
  EXPECT_EQ(folder.entries(), 1);
  {
    const auto lock = remove_temporary_files();
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(FileWriter, TakesOverWhatAKilledWriterLeft) {
  const TemporaryFolder folder;
  test::write_text(folder / "a.0.tmp", "the start of a long file");
  FileWriter writer(folder / "a");
  writer.write("x");
  writer.commit();
  EXPECT_EQ(test::read_text(folder / "a"), "x");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(FileWriter, WhatAKilledWriterLeavesOfAReadOnlyFileCanBeWritten) {
  using std::filesystem::perms;
  const TemporaryFolder folder;
  const auto permissions = [&](const char* name) { return std::filesystem::status(folder / name).permissions(); };
  test::write_text(folder / "a", "");
  std::filesystem::permissions(folder / "a", perms::owner_read | perms::group_read);
  FileWriter writer(folder / "a");
  EXPECT_EQ(permissions("a.0.tmp"), perms::owner_read | perms::owner_write | perms::group_read);
  writer.commit();
  EXPECT_EQ(permissions("a"), perms::owner_read | perms::group_read);
}

TEST(FileWriter, LeavesTheFilesOfOthersAlone) {
  const TemporaryFolder folder;
  test::write_text(folder / "a.0.tmp", "of another process");
  const int locked = ::open((folder / "a.0.tmp").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  test::write_text(folder / "b", "elsewhere");
  std::filesystem::create_symlink(folder / "b", folder / "a.1.tmp");
  {
    FileWriter first(folder / "a"), second(folder / "a");
    first.write("first");
    second.write("second");
    first.finish();
    FileWriter third(folder / "a");
    first.commit();
    second.commit();
  }
  ::close(locked);
  EXPECT_EQ(test::read_text(folder / "a"), "second");
  EXPECT_EQ(test::read_text(folder / "b"), "elsewhere");
  EXPECT_EQ(test::read_text(folder / "a.0.tmp"), "of another process");
  EXPECT_EQ(folder.entries(), 4);
}

TEST(MadeFolder, GoesWithTheTemporaryFilesThatWereInIt) {
  const TemporaryFolder folder;
  test::write_text(folder / "file", "");
  EXPECT_NE(error_of([&] { const MadeFolder made(folder / "file"); }).find("the folder cannot be made"), std::string::npos);
  const MadeFolder made(folder / "made");
  FileWriter writer(folder / "made/a");
  EXPECT_EQ(folder.entries(), 2);
  {
    const auto lock = remove_temporary_files();
  }
  EXPECT_EQ(folder.entries(), 1);
}

TEST(MadeFolder, GoesWithThoseAboveItThatItMade) {
  const TemporaryFolder folder;
  {
    const MadeFolder made(folder / "a/b/");
    EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  }
  EXPECT_EQ(folder.entries(), 0);
  const MadeFolder made(folder / "a/b/c/");
  FileWriter writer(folder / "a/b/c/file");
  {
    const auto lock = remove_temporary_files();
  }
  EXPECT_EQ(folder.entries(), 0);
  test::write_text(folder / "file", "");
  EXPECT_NE(error_of([&] { const MadeFolder part(folder / "file/d"); }).find("file: the folder cannot be made"), std::string::npos);
}

TEST(Names, AreQuotedForOneLine) {
  EXPECT_EQ(quote_name("a.é😀"), "'a.é😀'");
  EXPECT_EQ(quote_name("a\n\x1b\xff\xc2\x85"), "'a\\x0a\\x1b\\xff\\xc2\\x85'");
  EXPECT_EQ(quote_name("\xe2\x82"), "'\\xe2\\x82'");
  EXPECT_EQ(quote_name(std::string(500, 'x')), "'" + std::string(120, 'x') + "...'");
}

TEST(Names, AByteThatIsNotUtf8IsToldByItsOffset) {
  const auto error_of = [](std::string_view text) {
    try {
      check_utf8(text, "text");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("plain and é"), "");
  EXPECT_EQ(error_of("a\xff"), "text: is not UTF-8: byte \\xff at offset 1");
  EXPECT_EQ(error_of("eight letters, é\xe2\x82"), "text: is not UTF-8: byte \\xe2 at offset 17");
}

TEST(Names, NearOnesAreFound) {
  const std::vector<std::string_view> known{"encoder.layer.0.weight", "encoder.layer.1.weight", "pooler.bias", "model.pooler.weight"};
  EXPECT_EQ(near_hint("pooler.bais", known), " (near: 'pooler.bias')");
  EXPECT_EQ(near_names("pooler.weight", known).at(0), "model.pooler.weight");
  EXPECT_EQ(near_names("encoder.layer.2.weight", known).size(), 2u);
  EXPECT_EQ(near_hint("something else", known), "");
  const std::vector<std::string_view> commands{"chat", "eval", "embed"};
  EXPECT_EQ(near_hint("caht", commands), " (near: 'chat')");  // two letters changed places
  EXPECT_EQ(near_or_allowed("evl", commands), " (near: 'eval'; allowed: chat, eval, embed)");
  EXPECT_EQ(near_or_allowed("fly", commands), " (allowed: chat, eval, embed)");
}

}  // namespace
}  // namespace rlx
