/// Archives of arrays: members that are stored or deflated, ZIP64, and damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/input_archives.hpp"

namespace samesum::harness {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string two = npy(dict("<f8", "(2,)"), stored<double>({1, 2.5}));
const std::string three = npy(dict("<i4", "(3,)"), stored<std::int32_t>({1, 2, 3}));

std::string npz_complaint(const std::string& file, const std::string& member = "") {
  return complaint([&] { return parse_npz(as_bytes(file), "x.npz", member); });
}

bool has_zlib() { return npz_complaint(zip({{"a.npy", two, true}})).empty(); }

TEST(TheNpzReader, ReadsTheMemberThatIsNamedOrTheOnlyOne) {
  const std::string file = zip({{"a.npy", two}, {"notes.txt", "x"}, {"folder/b.npy", three}});
  EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "a")), ElementsAre(1, 2.5));
  EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "folder/b.npy")), ElementsAre(1, 2, 3));
  EXPECT_THAT(doubles(parse_npz(as_bytes(zip({{"a.npy", two}, {"notes.txt", "x"}})), "x", "")),
              ElementsAre(1, 2.5));
  EXPECT_EQ(npz_complaint(file), "x.npz: has 2 members: 'a', 'folder/b'; choose one as in FILE.npz:MEMBER");
  EXPECT_EQ(npz_complaint(file, "c"), "x.npz: no member 'c'; it has 'a', 'folder/b'");
  EXPECT_THAT(npz_complaint(zip({})), HasSubstr("has no .npy member"));
}

TEST(TheNpzReader, ReadsZip64AndComments) {
  for (const bool zip64 : {false, true})
    for (const std::string comment : {"", "PK\5\6 a comment that looks like an end"}) {
      const std::string file =
          zip({{"a.npy", two}, {.name = "b.npy", .content = three, .zip64 = true}}, comment, zip64);
      EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "b")), ElementsAre(1, 2, 3)) << zip64 << comment;
    }
}

TEST(TheNpzReader, ReadsTheLastOfSeveralMembersOfOneNameAsNumPyDoes) {
  const std::string twice = zip({{"a.npy", two}, {"a.npy", three}});
  for (const std::string member : {"", "a", "a.npy"})
    EXPECT_THAT(doubles(parse_npz(as_bytes(twice), "x", member)), ElementsAre(1, 2, 3)) << member;
  const std::string among =
      zip({{"b.npy", two}, {"a.npy", two}, {"a.npy", three}, {"c.npy", two}, {"a.npy", two}});
  EXPECT_THAT(doubles(parse_npz(as_bytes(among), "x", "a")), ElementsAre(1, 2.5));
  EXPECT_EQ(npz_complaint(among), "x.npz: has 3 members: 'a', 'b', 'c'; choose one as in FILE.npz:MEMBER");
}

TEST(TheNpzReader, PrefersTheMemberWithTheExactNameAsNumPyDoes) {
  const std::string file = zip({{"a.npy.npy", three}, {"a.npy", two}});
  EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "a.npy")), ElementsAre(1, 2.5));
  EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "a")), ElementsAre(1, 2.5));
  EXPECT_THAT(doubles(parse_npz(as_bytes(file), "x", "a.npy.npy")), ElementsAre(1, 2, 3));
  EXPECT_THAT(doubles(parse_npz(as_bytes(zip({{"a.npy.npy", three}})), "x", "a.npy")), ElementsAre(1, 2, 3));
}

TEST(TheNpzReader, PassesOverBytesBehindAnArchiveAsNumPyDoes) {
  for (const bool zip64 : {false, true})
    for (const std::string comment : {"", "a comment"}) {
      const std::string file = zip({{"a.npy", two}}, comment, zip64);
      for (const std::string& more :
           {std::string(10, '\0'), std::string(1000, 'x'), std::string{"PK\5\6 too short"}})
        EXPECT_THAT(doubles(parse_npz(as_bytes(file + more), "x", "")), ElementsAre(1, 2.5))
            << zip64 << comment;
    }
  const std::string file = zip({{"a.npy", two}});
  EXPECT_EQ(npz_complaint(file + std::string(65536, '\0')), "");
  EXPECT_THAT(npz_complaint(file + std::string(65537, '\0')), HasSubstr("has no end of a ZIP archive"));
  EXPECT_THAT(doubles(parse_npz(as_bytes(file + zip({{"a.npy", three}})), "x", "")), ElementsAre(1, 2, 3))
      << "two archives, of which NumPy reads the last";
}

TEST(TheNpzReader, InflatesMembers) {
  if (!has_zlib()) GTEST_SKIP() << "built without zlib";
  EXPECT_THAT(doubles(parse_npz(as_bytes(zip({{"a.npy", two}, {"b.npy", three, true}})), "x", "b")),
              ElementsAre(1, 2, 3));
  // 100 times 2, compressed by zlib
  const char bytes[] =
      "\x9b\xec\x17\xea\x1b\x10\xc9\xc8\x60\xc3\x50\xad\x9e\x92\x5a\x9c\x5c\xa4\x6e\xa5"
      "\xa0\x6e\x93\x66\xa1\xae\xa3\xa0\x9e\x96\x5f\x54\x52\x94\x98\x17\x9f\x5f\x94\x92"
      "\x0a\x12\x77\x4b\xcc\x29\x4e\x05\x8a\x17\x67\x24\x16\xa4\x02\xf9\x1a\x86\x06\x06"
      "\x3a\x9a\x3a\x0a\xb5\x5c\x0c\x10\xe0\x30\x4a\x8f\xd2\xa3\x34\x26\x0d\x00";
  const std::string content = npy(dict("<f8", "(100,)"), stored(std::vector<double>(100, 2)));
  const std::string deflated{bytes, sizeof bytes - 1};
  for (const std::size_t portion : {std::size_t{1}, std::size_t{100}, portion_bytes})
    EXPECT_EQ(
        doubles(parse_npz(as_bytes(zip({{"a.npy", content, true, deflated}})), "x", "", nullptr, portion)),
        std::vector<double>(100, 2));
  const auto says = [&](ZipMember m) { return npz_complaint(zip({m})); };
  EXPECT_THAT(says({"a.npy", content, true, deflated.substr(0, 20)}), HasSubstr("x.npz:a: damaged"));
  EXPECT_THAT(says({"a.npy", content, true, "\xff" + deflated}), HasSubstr("compressed bytes are not valid"));
  EXPECT_THAT(says({"a.npy", content.substr(0, 200), true, deflated}), HasSubstr("cut short"));
  EXPECT_THAT(
      says({.name = "a.npy", .content = content, .deflated = true, .bytes = deflated, .size_error = 8}),
      HasSubstr("too long"));
  EXPECT_THAT(
      says({.name = "a.npy", .content = content, .deflated = true, .bytes = deflated, .crc_error = 1}),
      HasSubstr("x.npz:a: damaged: its checksum (CRC-32) does not match"));
}

TEST(TheNpzReader, NamesWhatIsDamaged) {
  const ZipMember good{"a.npy", two};
  const auto with = [&](auto change) {
    ZipMember m = good;
    change(m);
    return npz_complaint(zip({m}));
  };
  EXPECT_EQ(npz_complaint(zip({good})), "");
  EXPECT_EQ(with([](ZipMember& m) { m.crc_error = 1; }),
            "x.npz:a: damaged: its checksum (CRC-32) does not match");
  EXPECT_THAT(with([](ZipMember& m) { m.size_error = 8; }), HasSubstr("declares two sizes"));
  EXPECT_THAT(with([](ZipMember& m) { m.size_error = m.stored_error = 1u << 30; }),
              HasSubstr("ends behind the end of the archive"));
  EXPECT_THAT(with([](ZipMember& m) { m.place_error = 1; }), HasSubstr("no header where it begins"));
  EXPECT_THAT(with([](ZipMember& m) { m.place_error = 1u << 31; }), HasSubstr("behind its end"));
  EXPECT_THAT(with([](ZipMember& m) { m.flags = 1; }), HasSubstr("encrypted"));
  EXPECT_THAT(with([](ZipMember& m) { m.method = 12; }), HasSubstr("compressed by method 12"));
  EXPECT_THAT(with([](ZipMember& m) { m.content = "PK"; }), HasSubstr("x.npz:a: "));
  const std::string file = zip({good});
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_THAT(npz_complaint(file.substr(0, size)), HasSubstr("x.npz: not a .npz file")) << size;
}

}  // namespace

}  // namespace samesum::harness
