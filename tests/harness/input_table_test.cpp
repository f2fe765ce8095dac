/// Tables of text: the choice of a column, headers, quotes, and records that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/input_archives.hpp"
#include "harness/input_parts.hpp"

namespace samesum::harness {

namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

struct Table {
  std::string_view extension, text;
  TableOptions options;
  std::vector<double> values = {};
  std::string_view refusal = {};
};

const Table tables[] = {
    {".csv", "", {}, {}},
    {".csv", "", {.header = true}, {}},
    {".csv", "# c\n1\n2\n\n  \n3", {}, {1, 2, 3}},
    {".csv", "x\n1\n2\n", {.header = true}, {1, 2}},
    {".csv", "x\r\n1\r\n2\r\n", {"x"}, {1, 2}},
    {".csv", "1,2\n3,4\n", {"2"}, {2, 4}},
    {".csv", "a,b\n1,2\n3,4\n", {"b"}, {2, 4}},
    {".csv",
     "\xef\xbb\xbf"
     "a;b\n1;2\n",
     {"a"},
     {1}},
    {".csv", "a\tb\n1\t2\n", {"b"}, {2}},
    {".csv", "2,1\n3,4\n", {"1", true}, {4}},
    {".csv", "a,b\n3,4\n", {"2", true}, {4}},
    {".csv", "\"a, \"\"b\"\"\", c \nx y, 1 \n\"one\ntwo\",\"2\"\n", {"c"}, {1, 2}},
    {".csv", "\"a, \"\"b\"\"\",c\n7,1\n", {"a, \"b\""}, {7}},
    {".csv", "size,5\" disk\n1,2\n", {"size"}, {1}},
    {".csv", "d;v\n1,5;2\n;3\n", {"v"}, {2, 3}},
    {".tsv", "a\tb c\tb\n\t2,5\t1e3\n", {"b"}, {1000}},
    {".txt", "  a   b \n1 2\n 3\t4  \n", {"b"}, {2, 4}},
    {".txt", "1,2\n3,4", {"1"}, {1, 3}},
    {".csv", "#a,b\n1,2\n3,4\n", {"b"}, {2, 4}},
    {".csv", "# a license\n\n# a, b\r\n1,2\r\n3,4\n", {"2", true}, {2, 4}},
    {".csv", "# price\n1\n2\n", {.header = true}, {1, 2}},
    {".csv", "#day,price\nMon,1\nTue,2\n", {"price"}, {1, 2}},
    {".txt", "# a b\n1 2\n", {"b"}, {2}},
    {".csv", "# a,b,c\n1,2\n3,4\n", {"2", true}, {4}},
    {".csv", "# price\n\n1\n2\n", {.header = true}, {2}},
    {".csv", "# source,url\nday,price\n3,4\n", {"price"}, {4}},
    {".csv", "# source,url\nday,2020\n3,4\n", {"day"}, {3}},
    {".csv", "price (EUR; net),quantity\n\n1,2\n", {"quantity"}, {2}},
    {".csv", "a,\"b;c\"\n1,\"2;3\"\n", {"a"}, {1}},
    {".csv", "p0 ,\"p1 \"\n1,2\n", {"p0 "}, {1}},
    {".csv", "p0 ,\"p1 \"\n1,2\n", {" p1"}, {2}},
    {".csv", "a,b\n1,2\n3,\n4,NA\n5, NaN\n6,7\n8,#N/A\n", {.column = "b", .skip_missing = true}, {2, 7}},
    {".csv", "b\n1\nnull\n\n2\n", {.column = "b", .skip_missing = true}, {1, 2}},
    {".csv", "NA\n1\n", {.skip_missing = true}, {1}},
    {".csv", "a,b\n1,2\n3,4\n,6\nNA,x\n", {.column = "b", .where = "a > 1"}, {4}},
    {".csv", "1,2\n3,4\n", {.column = "2", .where = "1 <= 1"}, {2}},
    {".csv", "a\n1\n2\n3\n", {.where = "a != 2"}, {1, 3}},
    {".csv",
     "a,b\nx,2\n",
     {.column = "b", .where = "a=1"},
     {},
     "'x' in the column of --where is not a number"},
    {".csv", "a,b\n1,2\n", {.column = "b", .where = "c > 1"}, {}, "no column 'c'"},
    {".csv", "tag,n\n#cats,3\n# dogs,4\n#\n", {"n"}, {}, "line 4, column 1: this record has 1 field, and"},
    {".csv", "tag,n\n#cats,3\n# dogs,4\n", {"n"}, {3, 4}},
    {".csv", "\"#cats\",3\n#dogs,4\n", {"2"}, {3, 4}},
    {".csv", "# c\n\n# #N/A,1\n#cats,3\ndogs,4\n#birds,5\n", {"2"}, {4, 5}},
    {".csv", "#N/A,1\n#REF!,2\n", {"2"}, {1, 2}},
    {".txt", "#N/A 1\n#NAME? 2\n", {"2"}, {1, 2}},
    {".csv", "a,b\n#DIV/0!,20\n3,30\n", {"b"}, {20, 30}},
    {".csv", "n,tag\n3,x # note\n4,# x\n", {"n"}, {3, 4}},
    {".csv",
     "1,2\n# a,b\n3,4\n",
     {"2", true},
     {},
     "line 2, column 5: 'b' is not a number; # begins a comment"},
    {".csv",
     "a,b\n\n# c\n1,2\n",
     {"b"},
     {},
     "line 3, column 1: this record has 1 field, and the first one 2; # begins a comment only at the start "
     "of "
     "a line before the first record"},
    {".csv", "1\n2 # two\n", {}, {}, "line 2, column 1: '2 # two' is not a number; # begins a comment only"},
    {".csv",
     "1,2 # two\n",
     {"2"},
     {},
     "line 1, column 3: '2 # two' is not a number; # begins a comment only"},
    {".csv", "1\n# c\n", {}, {}, "line 2, column 1: '# c' is not a number; # begins a comment only"},
    {".csv", "a;b\n1;\"1,234.50\"\n", {"b"}, {}, "'1,234.50' is not a number; if ',' is a decimal comma"},
    {".csv", "a;b\n1;1,234\n", {"b"}, {}, "write a point instead; if it separates thousands, remove it"},
    {".csv", "#a,b\n1,2\n", {"c"}, {}, "no column 'c'; it has 2 columns: 'a', 'b'"},
    {".csv", "#a,b\nx,2\n", {"1", true}, {}, "'x' is not a number"},
    {".csv",
     "1 2 3\n",
     {},
     {},
     "'1 2 3' is not a number; to read several numbers per line, name the file .txt"},
    {".csv",
     "2020,2021\n1,2\n",
     {"2020"},
     {},
     "no column '2020'; it has 2 columns, counted from 1: '2020', '2021'; to choose one by its name, pass "
     "--header"},
    {".csv", "a;b\n1;2\n3;4;5\n", {"a"}, {}, "this record has 3 fields, and the first one 2"},
    {".csv",
     "1,2\n3,4\n",
     {},
     {},
     "has 2 columns; choose one with --column N, counted from 1, or name the file .txt"},
    {".txt",
     "1 2\n3 4\n",
     {.skip_missing = true},
     {},
     "choose one with --column N, counted from 1, or leave out --skip-missing to read all numbers"},
    {".txt", "1\n2 3\n", {.where = "1 > 0"}, {}, "this record has 2 fields, and the first one 1"},
    {".csv", "a\n1\nNA\n", {.header = true}, {}, "'NA' is not a number; pass --skip-missing to leave out"},
    {".csv", "a\n1\n null\n", {.header = true}, {}, "'null' is not a number; pass --skip-missing"},
    {".csv", "a,b\n1,2\n", {}, {}, "has 2 columns: 'a', 'b'; choose one with --column NAME"},
    {".tsv", "1\t2\n", {.header = true}, {}, "has 2 columns: '1', '2'; choose one with --column NAME"},
    {".csv", "a,b\n1,2\n", {"c"}, {}, "no column 'c'; it has 2 columns: 'a', 'b'"},
    {".csv", "1,2\n1,2\n", {"3"}, {}, "no column '3'; it has 2 columns"},
    {".csv", "1,2\n1,2\n", {"0"}, {}, "no column '0'; it has 2 columns, counted from 1"},
    {".csv", "1,2\n1,2\n", {"-1"}, {}, "no column '-1'"},
    {".csv", "a,a\n1,2\n", {"a"}, {}, "several columns are named 'a'; choose one with --column N"},
    {".csv",
     "a,b\n1,2\n",
     {"1"},
     {},
     "line 1, column 1: 'a' is not a number; if this line is a header, pass --header"},
    {".csv",
     "x\n1\n",
     {},
     {},
     "line 1, column 1: 'x' is not a number; if this line is a header, pass --header"},
    {".csv", "a,b\n1,2\n3, x\n", {"b"}, {}, "line 3, column 4: 'x' is not a number"},
    {".csv", "a;b\n1;2,5\n", {"b"}, {}, "'2,5' is not a number; if ',' is a decimal comma"},
    {".csv", "a,b\n1,2\n3,\n", {"b"}, {}, "line 3, column 3: the field is empty; pass --skip-missing"},
    {".csv", "a,b\n1,2\n3\n", {"a"}, {}, "line 3, column 1: this record has 1 field, and the first one 2"},
    {".csv", "a,b\n1,2\n3,4,5\n", {"a"}, {}, "this record has 3 fields, and the first one 2"},
    {".csv", "a,b\n1,\"2\n3,4\n", {"a"}, {}, "line 2, column 1: a quote in this record is not closed"},
    {".csv", "# c\n", {"a"}, {}, "has no record, and no column 'a'"},
    {".csv", "a\x1b,b\n1,2\n", {}, {}, "'a\\x1b', 'b'"},
};

std::string text_of(const Table& t) { return std::string{t.text} + " --column " + t.options.column; }

TEST(TheTableReader, ReadsTheChosenColumnOrStatesTheRemedy) {
  for (const Table& t : tables)
    for (std::size_t portion : {std::size_t{1}, std::size_t{5}, portion_bytes}) {
      Column column{};
      const std::string message = complaint([&] {
        column = parse_table(t.text, "x", t.extension, t.options, nullptr, portion);
        return 0;
      });
      if (t.refusal.empty()) {
        ASSERT_THAT(message, IsEmpty()) << text_of(t);
        EXPECT_THAT(doubles(column), ElementsAreArray(t.values)) << text_of(t);
      } else {
        EXPECT_THAT(message, HasSubstr(std::string{t.refusal})) << text_of(t);
      }
    }
}

/// The texts in the column of keys of a table that is read in portions of one byte.
std::vector<std::string> keys_of(std::string_view text, const TableOptions& options) {
  std::vector<std::string> all;
  const auto bytes = std::as_bytes(std::span{text});
  const std::unique_ptr<ElementReader> reader = open_table(
      {std::make_unique<MemoryBytes>(std::vector(bytes.begin(), bytes.end())), "x", nullptr, 1, options},
      ";,\t");
  read_all(*reader, [&](const Column& portion) {
    EXPECT_EQ(portion.keys.size(), portion.size());
    all.insert(all.end(), portion.keys.begin(), portion.keys.end());
  });
  return all;
}

TEST(TheTableReader, KeepsTheTextsOfTheColumnOfKeys) {
  const std::string table = "# none\nv,k\n1,a\n2, \"b, \"\"c\" \n3,\n4,a # b\n";
  const std::vector<std::string> expected{"a", "b, \"c", "", "a # b"};
  EXPECT_EQ(keys_of(table, {"v", false, "k"}), expected);
  EXPECT_EQ(keys_of(table, {"1", true, "2"}), expected);
  EXPECT_EQ(keys_of(table, {"1", false, "k"}), expected);
  EXPECT_EQ(keys_of(table, {.by = "k", .counts = true}), expected);
  EXPECT_EQ(keys_of("#v,k\na,1\n", {"k", false, "v"}), std::vector<std::string>{"a"});
  EXPECT_EQ(keys_of("1,1\n2,1\n", {"1", false, "1"}), (std::vector<std::string>{"1", "2"}));
  EXPECT_THAT(complaint([&] {
                return keys_of(table, {"v", false, "j"}).size();
              }),
              HasSubstr("no column 'j'; it has 2 columns: 'v', 'k'"));
  EXPECT_THAT(complaint([&] {
                return keys_of("1,1\n", {"1", false, "3"}).size();
              }),
              HasSubstr("no column '3'"));
}

TEST(TheTableReader, RefusesErrorsOfSpreadsheetsAndSpecialsOfMsvcOnlyInTheColumnOfNumbers) {
  for (const std::string_view word : specials)
    for (const std::string quote : {"", "\""}) {
      const std::string field = quote + std::string{word} + quote;
      const auto refused = [&](const std::string& text, const TableOptions& options) {
        return complaint([&] { return parse_table(text, "x", ".csv", options); });
      };
      const std::string problem = shown(word) + " is not a number; write nan or inf instead";
      EXPECT_EQ(refused("n\n1\n" + field + "\n", {"n"}), "x: line 3, column 1: " + problem);
      EXPECT_EQ(refused(field + "\n1\n", {}), "x: line 1, column 1: " + problem);
      EXPECT_EQ(refused("k,n\na," + field + "\n", {"n"}), "x: line 2, column 3: " + problem);
      EXPECT_EQ(refused("n,k\n" + field + ",a\n", {"n"}), "x: line 2, column 1: " + problem);
      const std::string other = "k,n\n" + field + ",1\n" + field + ",2\na,3\n";
      EXPECT_THAT(doubles(parse_table(other, "x", ".csv", {"n"})), ElementsAreArray({1, 2, 3}));
      EXPECT_EQ(keys_of(other, {.by = "k", .counts = true}),
                (std::vector{std::string{word}, std::string{word}, std::string{"a"}}));
    }
}

TEST(TheTableReader, NotesNumbersThatBecameInfiniteOrLostDigits) {
  EXPECT_THAT(
      parse_table("k,n\n1e400,2\n3,\"-1e400\"\n4, 9007199254740993. \n", "x", ".csv", {"n"}).notes,
      testing::ElementsAre("x: line 3, column 3: '-1e400' is beyond the largest fp64 and was read as inf",
                           "x: line 4, column 4: '9007199254740993.' was rounded to fp64; without the "
                           "point, samesum sum with the method exact adds it unrounded"));
}

TEST(TheTableReader, KeepsWhatRoundingTakesFromIntegers) {
  const Column x = parse_table("id,n\n1,9007199254740993\n2,1\n", "x", ".csv", {"n"});
  EXPECT_THAT(x.lost, ElementsAreArray({1, 0}));
}

TEST(TheTableReader, NotesHowManyRecordsItLeftOut) {
  EXPECT_THAT(
      parse_table("a,b\n1,2\n3,\n4,5\n", "x", ".csv", {.column = "b", .skip_missing = true, .where = "a > 1"})
          .notes,
      testing::ElementsAre("x: 1 record was left out: the number is missing",
                           "x: 1 record was left out: --where does not hold"));
}

TEST(Conditions, AreAColumnAComparisonAndANumber) {
  for (const auto& [text, column, op, number] : {std::tuple{"price>=1e3", "price", ">=", 1000.0},
                                                 {" a b = 2", "a b", "==", 2.0},
                                                 {"3 != -1", "3", "!=", -1.0}}) {
    const std::optional<Condition> c = parse_condition(text);
    ASSERT_TRUE(c) << text;
    EXPECT_EQ(c->column, column);
    EXPECT_EQ(c->op, op);
    EXPECT_EQ(c->number.rounded, number);
  }
  for (const char* text : {"", "price", "> 1", "a > ", "a >> 1", "a > b", "a < 1 2"})
    EXPECT_FALSE(parse_condition(text)) << text;
}

TEST(Conditions, CompareIntegersExactly) {
  const auto holds = [](const char* condition, const char* text) {
    return parse_condition(condition)->holds(parse_written(text).value());
  };
  const char* const ascending[] = {"-0x20000000000001",
                                   "-9007199254740992",
                                   "9007199254740992",
                                   "9007199254740993",
                                   "9007199254740994.0",
                                   "0x20000000000003",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "12345678901234567890123456789012345678",
                                   "12345678901234567890123456789012345679",
                                   "inf"};
  for (std::size_t i = 0; i < std::size(ascending); ++i)
    for (std::size_t k = 0; k < std::size(ascending); ++k) {
      const auto is = [&](const char* op) {
        return holds((std::string{"x "} + op + ' ' + ascending[k]).c_str(), ascending[i]);
      };
      EXPECT_EQ(is("<"), i < k) << ascending[i] << ", " << ascending[k];
      EXPECT_EQ(is("<="), i <= k) << ascending[i] << ", " << ascending[k];
      EXPECT_EQ(is(">"), i > k) << ascending[i] << ", " << ascending[k];
      EXPECT_EQ(is(">="), i >= k) << ascending[i] << ", " << ascending[k];
      EXPECT_EQ(is("=="), i == k) << ascending[i] << ", " << ascending[k];
      EXPECT_EQ(is("!="), i != k) << ascending[i] << ", " << ascending[k];
    }
  EXPECT_TRUE(holds("x == 0.1", "0.1000000000000000055511151231257827")) << "others as numbers of fp64";
  EXPECT_TRUE(holds("x == 0.1", "1.000000000000000056e-01"));
  EXPECT_TRUE(holds("x != nan", "nan"));
  EXPECT_FALSE(holds("x >= nan", "nan"));
}

TEST(StandardInput, IsAnArrayIfItBeginsLikeOne) {
  const std::string array = npy(dict("<i8", "(2,)"), stored<std::int64_t>({1, 9007199254740993}));
  EXPECT_THAT(doubles(parse_pipe(as_bytes(array), "x")), ElementsAreArray({1.0, 9007199254740992.0}));
  EXPECT_THAT(doubles(parse_pipe(as_bytes("1 2"), "x")), ElementsAreArray({1, 2}));
  EXPECT_THAT(doubles(parse_pipe(as_bytes(""), "x")), IsEmpty());
  EXPECT_THAT(complaint([&] { return parse_pipe(as_bytes(array.substr(0, array.size() - 1)), "x"); }),
              HasSubstr("cut short"));
  EXPECT_THAT(doubles(parse_pipe(as_bytes(zip({{"a.npy", array}})), "x")),
              ElementsAreArray({1.0, 9007199254740992.0}));
  EXPECT_THAT(complaint([] { return parse_pipe(as_bytes("PK\3\4"), "x"); }), HasSubstr("not a .npz file"));
  EXPECT_THAT(complaint([&] { return parse_pipe(as_bytes("\x93NUMPX"), "x"); }),
              HasSubstr("is not a number"));
}

TEST(StandardInput, IsDecompressedIfGzipCompressedIt) {
  const std::string array = npy(dict("<f8", "(2,)"), stored<double>({1, 2.5}));
  const auto read = [](const std::string& bytes) {
    return doubles(parse_pipe(as_bytes(bytes), "x", nullptr, 1));
  };
  const auto refused = [](const std::string& bytes) {
    return complaint([&] { return parse_pipe(as_bytes(bytes), "x"); });
  };
  if (const std::string message = refused(gzip("1")); !message.empty()) {  // built without zlib
    EXPECT_THAT(message, HasSubstr("x: is compressed, and this tool was built without zlib (zlib1g-dev); "));
    EXPECT_THAT(message, HasSubstr("gzip -dc FILE.gz | samesum sum -"));
    return;
  }
  EXPECT_THAT(read(gzip("1 2\n3")), ElementsAreArray({1, 2, 3}));
  EXPECT_THAT(read(gzip("1 2\n") + gzip("") + gzip("3")), ElementsAreArray({1, 2, 3}));
  EXPECT_THAT(read(gzip("")), IsEmpty());
  const std::string zeros(40000, '\0');  // more than a block, as tape drives pad
  EXPECT_THAT(read(gzip("1 2\n") + '\0'), ElementsAreArray({1, 2}));
  EXPECT_THAT(read(gzip("1 2\n") + zeros + gzip("3") + zeros), ElementsAreArray({1, 2, 3}));
  EXPECT_EQ(refused(gzip("1") + zeros + "x"), "x: damaged: its compressed bytes are cut short");
  // The first stream of one of these files ends with a block of 32 KiB.
  for (std::size_t size = 32740; size < 32750; ++size)
    EXPECT_THAT(read(gzip(std::string(size, ' ') + '1') + gzip(" 2")), ElementsAreArray({1, 2})) << size;
  EXPECT_THAT(read(gzip(array)), ElementsAreArray({1.0, 2.5}));
  EXPECT_THAT(read(gzip(zip({{"a.npy", array}}))), ElementsAreArray({1.0, 2.5}));
  const std::string file = gzip("1 2 3");
  for (std::size_t size = 2; size < file.size(); ++size)
    EXPECT_EQ(refused(file.substr(0, size)), "x: damaged: its compressed bytes are cut short");
  std::string damaged = file;
  damaged[damaged.size() - 5] ^= 1;  // of the checksum
  EXPECT_EQ(refused(damaged), "x: damaged: its compressed bytes are not valid");
  EXPECT_EQ(refused(file + "x"), "x: damaged: its compressed bytes are cut short");
  EXPECT_EQ(refused(file + "garbage behind it"), "x: damaged: its compressed bytes are not valid");
  EXPECT_THAT(refused(gzip(gzip("1"))), HasSubstr("is not a number"));
}

}  // namespace

}  // namespace samesum::harness
