#include "harness/input.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "harness/input_files.hpp"
#include "harness/input_parts.hpp"
#include "support.hpp"

namespace samesum::harness {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<double> text(std::string_view s) { return doubles(parse_text(s, "x.txt")); }
std::string text_complaint(std::string_view s) {
  return complaint([&] { return parse_text(s, "x.txt"); });
}
Column read_npy(const std::string& file, const FormatInfo* format = nullptr) {
  return parse_npy(as_bytes(file), "x.npy", format);
}
std::string npy_complaint(const std::string& file, const FormatInfo* format = nullptr) {
  return complaint([&] { return read_npy(file, format); });
}

// --- text --------------------------------------------------------------------------------------------------

struct Spelling {
  std::string_view text;
  std::vector<double> values;
};

const Spelling spellings[] = {
    {"", {}},
    {"\n\n  \r\n# nothing\n", {}},
    {"\xef\xbb\xbf", {}},
    {"\xef\xbb\xbf"
     "1\n",
     {1}},
    {"1 2\t3,4\n5;6", {1, 2, 3, 4, 5, 6}},
    {"1 ; 2 ;\t3", {1, 2, 3}},
    {"1,2,3 4 5,6", {1, 2, 3, 4, 5, 6}},
    {"1\r\n2\r3\n\r4\v5\f6", {1, 2, 3, 4, 5, 6}},
    {"# head\n1 # one\n2\t#two, 3\r4", {1, 2, 4}},
    {"#\n  # indented\n1 #\n2, 3 ##\n #4", {1, 2, 3}},
    {"#!\n#N/A.\n#DIV\n#name?\n#1!\n# #N/A\n1", {1}},
    {"# a line that ends with CR\r7", {7}},
    {"+1 -2 +.5 -5. 1e3 1E+3 1e-3", {1, -2, 0.5, -5, 1e3, 1e3, 1e-3}},
    {"inf -INF +Infinity infinity", {inf, -inf, inf, inf}},
    {"0x1.8p3 0X1P-1074 -0xA.8 0xff 0x.8 0x8.", {12, 0x1p-1074, -10.5, 255, 0.5, 8}},
    {"0x1p+4 0x1p1024 -0x1p-1075 0x1.8p-1075", {16, inf, -0.0, 0x1p-1074}},
    {"0x1.00000000000008 0x1.00000000000008000000000000000000000000001 0x1.000000000000080000",
     {1, 0x1.0000000000001p0, 1}},
    {"1e999999999999 -1e999999999999999999999999 1e-400000000000 -1e-99999999999999999999999999",
     {inf, -inf, 0, -0.0}},
    {"0e999999999999999999999 -0 0x0p99999999999999999999", {0, -0.0, 0}},
    {"0x1p99999999999999999999 -0x1p-99999999999999999999", {inf, -0.0}},
    {"1.7976931348623157e308 1.7976931348623159e308 17976931348623158e292",
     {0x1.fffffffffffffp1023, inf, 0x1.fffffffffffffp1023}},
    {"2.4703282292062327e-324 2.4703282292062328e-324 4.9e-324", {0, 0x1p-1074, 0x1p-1074}},
    {"00000000000000000000000000000000000000000001.50000000000000000000000000000000", {1.5}},
};

TEST(TheTextReader, ReadsEverySpelling) {
  for (const Spelling& s : spellings) {
    const std::vector<double> values = text(s.text);
    ASSERT_EQ(values.size(), s.values.size()) << s.text;
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(to_bits(values[i]), to_bits(s.values[i])) << s.text << ", element " << i;
  }
}

TEST(TheTextReader, ReadsNaNOfAnyCaseAndSignAsTheCanonicalNaN) {
  for (const FormatInfo& format : formats)
    EXPECT_THAT(bits(parse_text("nan NaN -NAN +nan", "x", &format)), testing::Each(format.canonical_nan));
}

struct Refusal {
  std::string_view text, place, problem;
};

const Refusal refusals[] = {
    {"1,,2", "line 1, column 3:", "empty field"},
    {"1;2\n1,5;2,5", "line 2, column 4:", "decimal comma"},
    {"1;2,", "line 1, column 4:", "decimal comma"},
    {"1\n2, ,3", "line 2, column 4:", "empty field"},
    {",1", "line 1, column 1:", "empty field"},
    {"1\n2\n3,\n", "line 3, column 3:", "empty field"},
    {"1; # one", "line 1, column 9:", "empty field"},
    {"1,", "line 1, column 3:", "empty field"},
    {"1,#one", "line 1, column 7:", "empty field"},
    {"1\n2#two, 3", "line 2, column 1:", "'2#two' is not a number; put a blank before # to begin a comment"},
    {"\xef\xbb\xbf"
     "x y\n1 2\n",
     "line 1, column 1:", "'x' is not a number; if this line is a header, pass --header"},
    {"# c\r\n\r\n1 2 three", "line 3, column 5:", "'three' is not a number; if this line is a header"},
    {"1 2\n3 four", "line 2, column 3:", "'four' is not a number"},
    {"1\r\n2\rx", "line 3, column 1:", "'x' is not a number"},
    {"1 1.2.3", "column 3", "'1.2.3' is not a number"},
    {"\xff\xfe"
     "1",
     "line 1", "UTF-16"},
    {std::string_view{"1\0", 2}, "column 1", "'1\\x00' is not"},
    {"\x1b[31m", "column 1", "'\\x1b[31m' is not"},
    {"\xe2\x88\x92"
     "1",
     "column 1", "'\\xe2\\x88\\x921' is not"},
    {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee", "column 1",
     "'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...' is"},
};

TEST(TheTextReader, NamesLineAndColumnOfWhatItRefuses) {
  for (const Refusal& r : refusals) {
    const std::string message = text_complaint(r.text);
    EXPECT_THAT(message, StartsWith("x.txt: line ")) << r.text;
    EXPECT_THAT(message, HasSubstr(std::string{r.place}));
    EXPECT_THAT(message, HasSubstr(std::string{r.problem}));
  }
  EXPECT_THAT(text_complaint("1 2\n3 four"), Not(HasSubstr("header")));
}

TEST(TheTextReader, RefusesErrorsOfSpreadsheetsAndSpecialsOfMsvcWhereverTheyStand) {
  for (const std::string_view word : specials)
    for (const std::string_view before : {"", "1 ", "1,", "1; ", "# head\n", "1\n ", "1 2\n3\t"})
      for (const std::string_view after : {"", "\n2", " 2", ",2", " # two", ";3 4"}) {
        const std::string message =
            text_complaint(std::string{before} + std::string{word} + std::string{after});
        EXPECT_THAT(message, HasSubstr(shown(word) + " is not a number; write nan or inf instead"));
        const std::size_t line = before.rfind('\n') + 1;  // 0 if there is one line
        EXPECT_THAT(message, HasSubstr("x.txt: line " + std::to_string(line > 0 ? 2 : 1) + ", column " +
                                       std::to_string(before.size() - line + 1) + ": "));
      }
}

std::string rounded(const std::string& place) {
  return "x.txt: " + place +
         " was rounded to fp64; without the point, samesum sum with the method exact adds it "
         "unrounded";
}

TEST(TheTextReader, NotesNumbersThatBecameInfinite) {
  const auto notes = [](std::string_view s, const FormatInfo* format = nullptr) {
    return parse_text(s, "x.txt", format).notes;
  };
  EXPECT_THAT(
      notes("1\n2 1e400 -0x1p1024"),
      ElementsAre("x.txt: line 2, column 3: '1e400' is beyond the largest fp64 and was read as inf (the "
                  "first of 2)"));
  EXPECT_THAT(notes(std::string(310, '9')),
              ElementsAre(HasSubstr("9999...' is beyond the largest fp64 and")));
  EXPECT_THAT(notes("65519.99"), IsEmpty());
  EXPECT_THAT(notes("65520", &format_info<fp16>()),
              ElementsAre("x.txt: line 1, column 1: '65520' is beyond the largest fp16 and was read as inf"));
  EXPECT_THAT(notes("inf -Infinity INF 1.7976931348623158e308 nan 1e-400 0x1p1023"), IsEmpty());
}

TEST(TheTextReader, NotesWholeNumbersWithAPointThatLostDigits) {
  const auto notes = [](std::string_view s, const FormatInfo* format = nullptr) {
    return parse_text(s, "x.txt", format).notes;
  };
  EXPECT_THAT(notes("1 9007199254740993."), ElementsAre(rounded("line 1, column 3: '9007199254740993.'")));
  EXPECT_THAT(notes("-9007199254740993.000\n+0x20000000000001.0"),
              ElementsAre(rounded("line 1, column 1: '-9007199254740993.000'") + " (the first of 2)"));
  EXPECT_THAT(notes("9007199254740992. 9007199254740994.0 9007199254740993 9007199254740993.5 6.02214076e23 "
                    "123456789012345678e3 0x20000000000001 36893488147419103232.0000 1e400"),
              ElementsAre(HasSubstr("'1e400' is beyond")));
  EXPECT_THAT(notes("9007199254740993.", &format_info<fp64>()), IsEmpty()) << "the user wants it rounded";
}

TEST(TheTextReader, NotesCommasThatMaySeparateThousands) {
  const auto notes = [](std::string_view s, std::size_t portion = portion_bytes) {
    return parse_text(s, "x.txt", nullptr, portion).notes;
  };
  const std::string remedy = " numbers; if ',' separates thousands, remove it";
  EXPECT_THAT(notes("999.00\n1,234.50\n"),
              ElementsAre("x.txt: line 2, column 1: '1,234.50' was read as 2" + remedy));
  for (std::size_t portion = 1; portion <= 20; ++portion)
    EXPECT_THAT(
        notes("# a\r\n\n  -12,345,678 # b\r\n5\n+1,234.", portion),
        ElementsAre("x.txt: line 3, column 3: '-12,345,678' was read as 3" + remedy + " (the first of 2)"));
  EXPECT_THAT(notes("1,234"), ElementsAre(HasSubstr("'1,234' was read as 2")));
  // Other lines show that the comma separates numbers, or the numbers cannot be groups of digits.
  for (const std::string_view s :
       {"1,234\n5, 6", "1 234", "1, 234", "1 ,234", "1;234", "1,234.5,678", "1.5,234", "1,234.5e3", "1,-234",
        "1,0x12", "1,234 5", "5 1,234", "1", "", "100,200,300,400,500,600,700,800,900"})
    EXPECT_THAT(notes(s), IsEmpty()) << s;
}

TEST(TheTextReader, NotesCommasThatMayBeDecimalCommas) {
  const auto notes = [](std::string_view s, std::size_t portion = portion_bytes) {
    return parse_text(s, "x.txt", nullptr, portion).notes;
  };
  const std::string remedy = " was read as 2 numbers; if ',' is a decimal comma, write a point instead";
  for (std::size_t portion = 1; portion <= 20; ++portion)
    EXPECT_THAT(notes("# a\r\n7\n -1,5 # b\r\n1,234\n2,75", portion),
                ElementsAre("x.txt: line 3, column 2: '-1,5'" + remedy + " (the first of 2)"));
  for (const std::string s : {"0,123", "1234,567", "1,23", "1,2345", "1,234e3", "+0,5E-1"})
    EXPECT_THAT(notes(s), ElementsAre("x.txt: line 1, column 1: '" + s + "'" + remedy));
  for (const std::string_view s : {"1,5\n2, 6", "1,5\n2,6,7", "1,5\n2;6", "1,5 2", "1,-5", "1e3,5", "1,5.5"})
    EXPECT_THAT(notes(s), IsEmpty()) << s;
}

TEST(TheTextReader, RefusesWordsThatAreNoNumbers) {
  for (const std::string_view word :
       {"+",     "-",     ".",   "-.",       "e5",      ".e5",       "1e",   "1e+",  "1e+-1",
        "1e5.0", "1e5e5", "--1", "+-1",      "0x",      "0x.",       "0xp1", "0x1p", "0x1p1.0",
        "0x1pa", "1_000", "1f",  "1d5",      "infinit", "infinityy", "in",   "na",   "nan(1)",
        "nan0",  "0b1",   "1p3", "\"1\"",    "1'0",     "x",         "..1",  "1..",  "NA",
        "null",  "True",  "1/2", "0x1.8.p3", "0x-1",    "1e 5x"})
    EXPECT_THAT(text_complaint(word), HasSubstr("is not a number")) << word;
}

TEST(TheTextReader, GivesElementsOfTheRequestedFormat) {
  for (const FormatInfo& format : formats) {
    const Column column = parse_text("1 -2 0.5 1e9999", "x", &format);
    EXPECT_EQ(column.format, &format);
    EXPECT_THAT(doubles(column), ElementsAre(1, -2, 0.5, inf));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(column.values().data) % alignof(double), 0u);
  }
}

TEST(TheTextReader, RoundsOnceDirectlyFromTheDecimal) {
  // These numbers lie just above a midpoint of the narrow format; in fp64 (and fp32) they round to that
  // midpoint.
  EXPECT_EQ(parse_number("1.00048828125000000000000000000001", format_info<fp16>())->bits, 0x3c01u);
  EXPECT_EQ(parse_number("1.00390625000000000000000000000001", format_info<bf16>())->bits, 0x3f81u);
  EXPECT_EQ(parse_number("1.000000059604644775390625000000001", format_info<fp32>())->bits, 0x3f800001u);
  EXPECT_EQ(parse_number("0x1.0020000000000000000000000000001", format_info<fp16>())->bits, 0x3c01u);
  EXPECT_EQ(parse_number("1.00048828125", format_info<fp16>())->bits, 0x3c00u);
  EXPECT_EQ(parse_number("65519.99999999999999999999999999999", format_info<fp16>())->bits, 0x7bffu);
  EXPECT_EQ(parse_number("-65520", format_info<fp16>())->bits, 0xfc00u);
}

TEST(TheTextReader, DoesNotDependOnTheFloatingPointEnvironment) {
  const std::string_view numbers =
      "0.1 1e-310 4.9e-324 1e23 8.5e-17 -0.3 1.00048828125 0x1.fffffffffffffffp-1030 1e308";
  for (const FormatInfo& format : formats) {
    const std::vector<std::uint64_t> expected = bits(parse_text(numbers, "x", &format));
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const Column column = parse_text(numbers, "x", &format);
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(bits(column), expected);
    }
#if defined(__SSE__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
    const Column column = parse_text(numbers, "x", &format);
    _mm_setcsr(before);
    EXPECT_EQ(bits(column), expected);
#endif
  }
}

TEST(TheTextReader, ReadsThousandsOfDigits) {
  const std::string zeros(5000, '0');
  EXPECT_THAT(text("1" + zeros + "e-5000 0." + zeros + "1e5001 1." + zeros + "1 0.5" + zeros),
              ElementsAre(1, 1, 1, 0.5));
  // 1 + 2^-53 is a tie, which the last of five thousand digits breaks.
  const std::string tie = "1.00000000000000011102230246251565404236316680908203125";
  EXPECT_THAT(text(tie + zeros + " " + tie + zeros + "1"), ElementsAre(1, 0x1.0000000000001p0));
}

// --- raw ---------------------------------------------------------------------------------------------------

TEST(TheRawReader, ReadsLittleEndianElementsOfEachFormat) {
  for (const FormatInfo& format : formats)
    with_format(format, [&]<class F>() {
      const std::string file = stored<BitsOf<F>>({to_bits(convert<F>(1.5)), Format<F>::infinity,
                                                  Format<F>::sign_bit, BitsOf<F>(Format<F>::infinity + 1)});
      EXPECT_THAT(
          bits(parse_raw(as_bytes(file), "x", format)),
          ElementsAre(to_bits(convert<F>(1.5)), format.infinity, format.sign_bit, format.infinity + 1));
      EXPECT_EQ(parse_raw({}, "x", format).size(), 0u);
    });
}

TEST(TheRawReader, RoundsOnceToTheRequestedFormat) {
  const std::string file = stored<double>({1.00048828125, 0x1.0020000000001p0, -1e300, 5e-324});
  const Column column = parse_raw(as_bytes(file), "x", format_info<fp64>(), &format_info<fp16>());
  EXPECT_THAT(bits(column), ElementsAre(0x3c00, 0x3c01, 0xfc00, 0));
  const std::string narrow = stored<std::uint16_t>({0x3f81});
  EXPECT_THAT(doubles(parse_raw(as_bytes(narrow), "x", format_info<bf16>(), &format_info<fp64>())),
              ElementsAre(1.0078125));
}

TEST(TheRawReader, RefusesAnIncompleteElement) {
  for (const FormatInfo& format : formats)
    EXPECT_THAT(
        complaint([&] { return parse_raw(as_bytes(std::string(format.bytes + 1, 'x')), "x", format); }),
        HasSubstr("has " + std::to_string(format.bytes + 1) + " bytes, not a multiple of the " +
                  std::to_string(format.bytes)));
}

// --- npy ---------------------------------------------------------------------------------------------------

template <class T>
void expect_npy(const std::string& type, const std::vector<T>& values, const std::vector<double>& expected) {
  for (const bool big_endian : {false, true})
    for (const int version : {1, 2, 3}) {
      const std::string order = big_endian ? ">" : "<";
      const std::string file = npy(dict(order + type, "(" + std::to_string(values.size()) + ",)"),
                                   stored(values, big_endian), version);
      EXPECT_EQ(doubles(read_npy(file)), expected) << order << type << " version " << version;
    }
}

TEST(TheNpyReader, ReadsEveryTypeInBothByteOrdersAndEveryVersion) {
  expect_npy<std::uint16_t>("f2", {0x3c00, 0xc100, 0x7bff}, {1, -2.5, 65504});
  expect_npy<float>("f4", {1.5f, -0x1p-149f, 0x1.fffffep127f}, {1.5, -0x1p-149, 0x1.fffffep127});
  expect_npy<double>("f8", {0.1, -inf, 5e-324}, {0.1, -inf, 5e-324});
  expect_npy<std::int8_t>("i1", {0, 1, -1, 127, -128}, {0, 1, -1, 127, -128});
  expect_npy<std::int16_t>("i2", {258, -258, -32768}, {258, -258, -32768});
  expect_npy<std::int32_t>("i4", {16909060, -16909060, INT32_MIN}, {16909060, -16909060, -0x1p31});
  expect_npy<std::int64_t>("i8", {1ll << 53, -(1ll << 53), INT64_MIN, 3ll << 61},
                           {0x1p53, -0x1p53, -0x1p63, 0x3p61});
  expect_npy<std::uint8_t>("u1", {0, 255}, {0, 255});
  expect_npy<std::uint16_t>("u2", {0x0102, 0xffff}, {258, 65535});
  expect_npy<std::uint32_t>("u4", {0x01020304, 0xffffffff}, {16909060, 0x1p32 - 1});
  expect_npy<std::uint64_t>("u8", {1ull << 63, (1ull << 53) - 1}, {0x1p63, 0x1p53 - 1});
  expect_npy<std::uint8_t>("b1", {0, 1, 1}, {0, 1, 1});
}

TEST(TheNpyReader, KeepsTheFormatOfFloatsAndReadsIntegersAsFp64) {
  EXPECT_EQ(read_npy(npy(dict("<f2", "()"), "ab")).format, &format_info<fp16>());
  EXPECT_EQ(read_npy(npy(dict("<f4", "()"), "abcd")).format, &format_info<fp32>());
  EXPECT_EQ(read_npy(npy(dict("<i2", "()"), "ab")).format, &format_info<fp64>());
  EXPECT_EQ(read_npy(npy(dict("|i1", "()"), "a")).size(), 1u);
  EXPECT_THAT(
      bits(read_npy(npy(dict("<f8", "(1,)"), stored<double>({0x1.0020000000001p0})), &format_info<fp16>())),
      ElementsAre(0x3c01));
}

/// Returns the offsets, in elements and in C order, of the elements of a Fortran-order array.
std::vector<std::size_t> fortran_places(const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> places{0};
  std::size_t stride = 1;
  std::vector<std::size_t> strides;
  for (const std::size_t n : shape) strides.push_back(stride), stride *= n;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::size_t> longer;
    for (const std::size_t place : places)
      for (std::size_t i = 0; i < shape[axis]; ++i) longer.push_back(place + i * strides[axis]);
    places = longer;
  }
  return places;
}

TEST(TheNpyReader, ReadsAFortranOrderArrayInCOrder) {
  const std::vector<std::size_t> shapes[] = {{},     {5},          {2, 3}, {3, 2}, {4, 1, 3},
                                             {1, 1}, {2, 3, 4, 5}, {1, 7}, {7, 1}};
  for (const std::vector<std::size_t>& shape : shapes) {
    std::string tuple = "(";
    for (const std::size_t n : shape) tuple += std::to_string(n) + ",";
    const std::vector<std::size_t> places = fortran_places(shape);
    std::vector<std::int32_t> c(places.size()), fortran(places.size());
    for (std::size_t i = 0; i < c.size(); ++i) fortran[places[i]] = c[i] = static_cast<std::int32_t>(100 + i);
    EXPECT_EQ(bits(read_npy(npy(dict("<i4", tuple + ")", true), stored(fortran)))),
              bits(read_npy(npy(dict("<i4", tuple + ")"), stored(c)))))
        << tuple;
  }
  // numpy.asfortranarray([[1, 2, 3], [4, 5, 6]])
  EXPECT_THAT(doubles(read_npy(npy(dict(">f4", "(2, 3)", true), stored<float>({1, 4, 2, 5, 3, 6}, true)))),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(TheNpyReader, ReadsAnEmptyShapeAsNoElements) {
  for (const std::string shape : {"(0,)", "(3, 0)", "(0, 9223372036854775)", "(0, 0, 0)"})
    for (const bool fortran : {false, true})
      EXPECT_EQ(read_npy(npy(dict("<f8", shape, fortran), "")).size(), 0u) << shape;
}

TEST(TheNpyReader, ReadsAnyDictThatPythonWouldWrite) {
  const std::string data = stored<float>({1, 2});
  for (const std::string dict : {
           "{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }",
           "  { 'fortran_order' : True , 'shape' : ( 1 , 2 ) , 'descr' : '<f4' }      ",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1,), }",
       })
    EXPECT_THAT(doubles(read_npy(npy(dict, data))), ElementsAre(1, 2)) << dict;
}

TEST(TheNpyReader, KeepsWhatRoundingTakesFromIntegersUnlessAFormatIsChosen) {
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const std::string wide = npy(
      dict(">i8", "(5,)"), stored<std::int64_t>({1, -9007199254740993, lowest, lowest + 1, ~lowest}, true));
  EXPECT_THAT(doubles(read_npy(wide)), ElementsAre(1, -9007199254740992, -0x1p63, -0x1p63, 0x1p63));
  EXPECT_THAT(read_npy(wide).lost, ElementsAre(0, -1, 0, 1, -1));
  EXPECT_EQ(read_npy(wide).rounded(), 3u);
  EXPECT_THAT(read_npy(wide, &format_info<fp64>()).lost, IsEmpty());
  const std::string big = npy(dict("<u8", "(2,)"), stored<std::uint64_t>({~std::uint64_t{0}, 1}));
  EXPECT_THAT(doubles(read_npy(big)), ElementsAre(0x1p64, 1));
  EXPECT_THAT(read_npy(big).lost, ElementsAre(-1, 0));
  EXPECT_THAT(
      bits(read_npy(npy(dict("<i4", "(2,)"), stored<std::int32_t>({-70000, 2049})), &format_info<fp16>())),
      ElementsAre(0xfc00, 0x6800));
}

TEST(TheTextReader, KeepsWhatRoundingTakesFromIntegers) {
  const Column x = parse_text("1 -9007199254740993 1e30 1000000000000000000000000000001 0.1", "x");
  EXPECT_THAT(doubles(x), ElementsAre(1, -9007199254740992, 1e30, 1e30, 0.1));
  // 10^30 is not a double; this one is 19884624838656 above it.
  EXPECT_THAT(x.lost, ElementsAre(0, -1, 0, 1 - 19884624838656.0, 0));
  EXPECT_THAT(parse_text("9007199254740993", "x", &format_info<fp64>()).lost, IsEmpty());
  EXPECT_THAT(parse_text("9007199254740993.0 -0000000000000000 nan 0x20000000000001p0", "x").lost, IsEmpty());
  EXPECT_THAT(
      parse_text("0x20000000000001 -0X0000020000000000003 0x1000000000000000000000000000001", "x").lost,
      ElementsAre(1, 1, 1));
}

TEST(TheTextReader, KeepsAllBitsOfLongIntegersInSeveralTerms) {
  // 2^160 + 1 and -(2^160 + 2^80 + 1)
  const Column x = parse_text(
      "1461501637330902918203684832716283019655932542977 3 "
      "-1461501637330902918203686041642102634285107249153",
      "x", nullptr, 9);
  EXPECT_THAT(doubles(x), ElementsAre(0x1p160, 3, -0x1p160));
  EXPECT_THAT(x.lost, ElementsAre(1, 0, -0x1p80));
  EXPECT_THAT(x.further_lost, ElementsAre(-1));
  EXPECT_EQ(x.rounded(), 2u);
  const std::string beyond(310, '9');
  EXPECT_THAT(parse_text(beyond + " -" + beyond, "x").lost, IsEmpty());
}

TEST(TheNpyReader, RefusesABoolBeyondOne) {
  EXPECT_THAT(npy_complaint(npy(dict("|b1", "(2,)"), "\x01\x02")),
              HasSubstr("element [1] is 2, which is not a bool"));
  EXPECT_THAT(
      bits(read_npy(npy(dict("<i4", "(2,)"), stored<std::int32_t>({-65504, 2050})), &format_info<fp16>())),
      ElementsAre(0xfbff, 0x6801));
}

struct BadNpy {
  std::string file, problem;
};

std::vector<BadNpy> bad_files() {
  const std::string eight(8, 'x');
  const std::string good = npy(dict("<f8", "(1,)"), eight);
  const auto with_type = [&](const std::string& type) { return npy(dict(type, "(1,)"), eight); };
  const auto with_shape = [&](const std::string& shape) { return npy(dict("<f8", shape), eight); };
  const auto with_dict = [&](const std::string& dict) { return npy(dict, eight); };
  std::string huge_header = good, version = good;
  huge_header[6] = 2, huge_header[10] = '\xff', huge_header[11] = '\x7f';
  version[6] = 4;
  return {
      {"", "cut short"},
      {good.substr(0, 3), "cut short: the header needs 8 bytes, and the file has 3"},
      {"PK\x03\x04 zip", "offset 0: not a .npy file"},
      {good.substr(0, 9), "cut short"},
      {good.substr(0, 40), "cut short: the header needs"},
      {version, "version 4.0"},
      {huge_header, "is too long"},
      {good.substr(0, good.size() - 1), "needs 8 bytes of data, and the file has 7"},
      {good + "x", "too long: the header's shape needs 8 bytes of data, and the file has 9"},
      {with_shape("(0,)"), "too long: the header's shape needs 0 bytes"},
      {with_shape("(-1,)"), "negative"},
      {with_shape("(1)"), "',' expected in 'shape'"},
      {with_shape("1"), "'(' expected"},
      {with_shape("(1 2)"), "',' expected"},
      {with_shape("(1, 2"), "not a number"},
      {with_shape("(1.5,)"), "',' expected"},
      {with_shape("(x,)"), "not a number"},
      {with_shape("(,)"), "not a number"},
      {with_shape("(99999999999999999999,)"), "too large"},
      {with_shape("(9223372036854775807,)"), "too large"},
      {with_shape("(4294967296, 4294967296)"), "too large"},
      {with_shape("(0, 4294967296, 4294967296)"), "too large"},
      {with_shape("(1000000000000000,)"), "needs 8000000000000000 bytes of data, and the file has 8"},
      {with_shape("(" + std::string(200, '1') + ",)"), "too large"},
      {with_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                  "1,1,1,1,1,"
                  "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
       "too many dimensions"},
      {with_type("<f16"), "longdouble"},
      {with_type("<c16"), "complex"},
      {with_type("|O"), "Python objects"},
      {with_type("<U2"), "strings"},
      {with_type("|S8"), "strings"},
      {with_type("<M8[ns]"), "dates"},
      {with_type("|V2"), "bfloat16"},
      {with_type("<i3"), "unknown"},
      {with_type("<q"), "unknown"},
      {with_type("|f8"), "byte order"},
      {with_type("=f8"), "byte order"},
      {with_type("f8"), "byte order"},
      {with_type(""), "byte order"},
      {with_type("\x1b\n"), "'\\x1b\\x0a'"},
      {with_dict("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}"), "structured"},
      {with_dict(""), "'{' expected"},
      {with_dict("[]"), "'{' expected"},
      {with_dict("{"), "expected"},
      {with_dict("{}"), "lacks"},
      {with_dict("{'descr': '<f8', 'shape': (1,)}"), "lacks"},
      {with_dict("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"), "duplicate key"},
      {with_dict("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}"), "neither True nor False"},
      {with_dict("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}"), "unknown key 'more'"},
      {with_dict("{'descr': '<f8' 'fortran_order': False, 'shape': (1,)}"), "',' or '}' expected"},
      {with_dict(dict("<f8", "(1,)") + "x"), "text after the dict"},
      {with_dict("{'descr"), "unterminated string"},
  };
}

TEST(TheNpyReader, RefusesBadFilesWithTheReason) {
  for (const BadNpy& bad : bad_files()) {
    const std::string message = npy_complaint(bad.file);
    EXPECT_THAT(message, StartsWith("x.npy: "));
    EXPECT_THAT(message, HasSubstr(bad.problem));
  }
  EXPECT_THAT(npy_complaint(npy("{'descr': '<f8', !", "")), HasSubstr("offset 27:"));
}

// --- portions ----------------------------------------------------------------------------------------------

using Open = std::function<std::unique_ptr<ElementReader>(Source)>;

/// What a reader makes of a file: the elements, or the error.
struct Reading {
  std::string format, error;
  std::vector<std::uint64_t> elements;
  std::vector<double> lost = {};
  bool operator==(const Reading&) const = default;
};
void PrintTo(const Reading& r, std::ostream* out) {
  *out << r.format << r.error << testing::PrintToString(r.elements);
}

/// Reads a file that is in memory in portions of some bytes, from element `first` on.
Reading reading(const Open& open, std::string_view file, std::size_t portion, std::uint64_t first = 0) {
  const auto all = as_bytes(file);
  Reading r;
  r.error = complaint([&] {
    const auto reader =
        open({std::make_unique<MemoryBytes>(std::vector(all.begin(), all.end())), "x", nullptr, portion});
    r.format = reader->format().name;
    EXPECT_LE(reader->skip(first), first);
    r.elements = bits(read_all(*reader));
    return 0;
  });
  return r;
}

struct File {
  Open open;
  std::string content;
};

/// Returns good and bad files of every type.
std::vector<File> some_files() {
  std::vector<File> files;
  for (const Spelling& s : spellings) files.push_back({open_text, std::string{s.text}});
  for (const Refusal& r : refusals) files.push_back({open_text, std::string{r.text}});
  for (const BadNpy& bad : bad_files()) files.push_back({open_npy, bad.file});
  const std::vector<double> seven{0.1, -2, 1e300, 5e-324, -0.0, inf, 7};
  for (const bool big_endian : {false, true})
    files.push_back({open_npy, npy(dict(big_endian ? ">f8" : "<f8", "(7,)"), stored(seven, big_endian))});
  const std::string integers = stored<std::int32_t>({1, -2, 3, -4, 5, INT32_MIN});
  for (const std::string shape : {"(6,)", "(2, 3)", "(3, 2)"})
    for (const bool fortran : {false, true})
      files.push_back({open_npy, npy(dict("<i4", shape, fortran), integers)});
  files.push_back(
      {open_npy, npy(dict("<i8", "(2, 3)"), stored<std::int64_t>({0, 1, 2, (1ll << 53) + 1, 4, 5}))});
  files.push_back({open_npy, npy(dict("|b1", "(3,)"), std::string("\0\1\1", 3))});
  for (const FormatInfo& format : formats)
    for (const std::string content : {"123456781234567812345678", "12345678123"})
      files.push_back({[&](Source s) { return open_raw(std::move(s), format); }, content});
  return files;
}

TEST(AReader, GivesTheSameElementsAndErrorsInPortionsOfAnySize) {
  for (const File& file : some_files()) {
    const Reading whole = reading(file.open, file.content, portion_bytes);
    for (std::size_t portion = 1; portion <= 40; ++portion)
      ASSERT_EQ(reading(file.open, file.content, portion), whole)
          << testing::PrintToString(file.content) << " in portions of " << portion << " bytes";
  }
}

TEST(AReader, PassesOverTheFirstElements) {
  for (const File& file : some_files()) {
    const Reading whole = reading(file.open, file.content, portion_bytes);
    if (!whole.error.empty()) continue;
    for (std::uint64_t first = 0; first <= whole.elements.size() + 2; ++first) {
      Reading rest = whole;
      const auto skipped = static_cast<std::ptrdiff_t>(std::min<std::size_t>(first, whole.elements.size()));
      rest.elements.erase(rest.elements.begin(), rest.elements.begin() + skipped);
      for (const std::size_t portion : {std::size_t{1}, std::size_t{9}, portion_bytes})
        ASSERT_EQ(reading(file.open, file.content, portion, first), rest)
            << testing::PrintToString(file.content) << " from element " << first;
    }
    EXPECT_THAT(reading(file.open, file.content, 5, ~std::uint64_t{0}).elements, IsEmpty());
  }
}

TEST(TheTextReader, ReadsANumberThatIsLongerThanManyPortions) {
  const std::string zeros(100'000, '0');
  EXPECT_THAT(doubles(parse_text("1" + zeros + "e-100000 2", "x", nullptr, 3)), ElementsAre(1, 2));
}

// --- files -------------------------------------------------------------------------------------------------

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ + name; }

  std::string write(const std::string& name, const std::string& content) {
    std::ofstream{path(name), std::ios::binary} << content;
    return path(name);
  }

  void SetUp() override {
    directory_ = testing::TempDir() + "samesum_input_" + std::to_string(getpid()) + "/";
    ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

 private:
  std::string directory_;
};

TEST_F(Files, AreReadByTheirExtension) {
  EXPECT_THAT(doubles(read_column(write("a.txt", "1 2"))), ElementsAre(1, 2));
  EXPECT_THAT(doubles(read_column(write("a.CSV", "1\n2"))), ElementsAre(1, 2));
  EXPECT_THAT(doubles(read_column(write("a.npy", npy(dict("<u1", "(2,)"), "\x01\x02")))), ElementsAre(1, 2));
  EXPECT_EQ(read_column(write("a.f16", "1234")).format, &format_info<fp16>());
  EXPECT_EQ(read_column(write("a.bf16", "1234")).format, &format_info<bf16>());
  EXPECT_EQ(read_column(write("a.f32", "1234")).format, &format_info<fp32>());
  EXPECT_EQ(read_column(write("a.f64", "12345678")).format, &format_info<fp64>());
  EXPECT_EQ(read_column(write("a.txt", "1"), &format_info<bf16>()).format, &format_info<bf16>());
}

TEST_F(Files, ThatAreEmptyHaveNoElementsUnlessTheyNeedAHeader) {
  for (const std::string name : {"a.txt", "a.csv", "a.f16", "a.bf16", "a.f32", "a.f64"})
    EXPECT_EQ(read_column(write(name, "")).size(), 0u) << name;
  EXPECT_THAT(complaint([&] { return read_column(write("a.npy", "")); }), HasSubstr("cut short"));
}

TEST_F(Files, ThatCannotBeReadAreNamed) {
  const auto says = [](const std::string& path) { return complaint([&] { return read_column(path); }); };
  EXPECT_EQ(says(path("no.txt")), path("no.txt") + ": no such file");
  EXPECT_THAT(says(path("")), HasSubstr("is a directory"));
  EXPECT_THAT(says(""), HasSubstr("the name is empty"));
  EXPECT_THAT(says(write("a.dat", "1")),
              HasSubstr("unknown extension '.dat'; known are .npy .npz .f16 .bf16 .f32 .f64 "
                        ".txt .csv .tsv, each also with .gz, .parquet .arrow .feather, and - for text, .npy "
                        "or .npz on standard input"));
  EXPECT_THAT(says(write("a.npz", "PK")), HasSubstr("not a .npz file"));
  EXPECT_THAT(says(write("plain", "1")), HasSubstr("no extension"));
  EXPECT_THAT(says(path("a\nb.txt")), HasSubstr("a\\x0ab.txt: no such file"));
  EXPECT_THAT(says(write("a.f32", "123456") + "/b.f32"), Not(IsEmpty()));
}

TEST_F(Files, WithoutReadPermissionAreRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  chmod(write("secret.txt", "1").c_str(), 0);
  EXPECT_THAT(complaint([&] { return read_column(path("secret.txt")); }),
              HasSubstr("cannot be opened: Permission denied"));
}

TEST_F(Files, OnStandardInputAreReadAsText) {
  const std::string file = write("a.txt", "1 2 3");
  const int before = dup(STDIN_FILENO);
  for (const std::string name : {"-", "/dev/stdin"}) {
    ASSERT_NE(std::freopen(file.c_str(), "rb", stdin), nullptr);
    EXPECT_THAT(doubles(read_column(name)), ElementsAre(1, 2, 3)) << name;
  }
  ASSERT_NE(std::freopen(write("b.txt", "1 x").c_str(), "rb", stdin), nullptr);
  EXPECT_THAT(complaint([] { return read_column("-"); }),
              StartsWith("standard input: line 1, column 3: 'x'"));
  dup2(before, STDIN_FILENO);
  close(before);
}

TEST_F(Files, CanBeReadFromAnyElementOn) {
  std::vector<double> x(400'000);
  std::string text;
  for (std::size_t i = 0; i < x.size(); ++i) text += std::to_string(i) + '\n', x[i] = static_cast<double>(i);
  const std::string raw = stored(x), array = npy(dict("<f8", "(400000,)"), raw);
  const auto expect_rest = [&](const std::string& path) {
    for (const std::size_t first : {0u, 1u, 131072u, 300'000u, 399'999u, 400'000u, 500'000u}) {
      if (testing_support::is_sanitized && first < 300'000 && first != 1) continue;
      const auto reader = open_elements(path);
      const std::size_t skipped = std::min(first, x.size());
      EXPECT_EQ(reader->skip(first), skipped);
      EXPECT_EQ(doubles(read_all(*reader)),
                std::vector(x.begin() + static_cast<std::ptrdiff_t>(skipped), x.end()));
    }
  };
  expect_rest(write("a.f64", raw));
  expect_rest(write("a.npy", array));
  expect_rest(write("a.txt", text));
  ASSERT_EQ(mkfifo(path("pipe.f64").c_str(), 0600), 0);
  std::thread writer{[&] { write("pipe.f64", raw); }};
  const auto reader = open_elements(path("pipe.f64"));
  EXPECT_EQ(reader->skip(123'456), 123'456u);
  EXPECT_EQ(read_all(*reader).values().as<double>().front(), 123'456);
  writer.join();
}

TEST_F(Files, ThatShrinkWhileTheyAreReadAreRefused) {
  const std::string file = write("a.npy", npy(dict("<f8", "(400000,)"), std::string(3'200'000, '\0')));
  const auto reader = open_elements(file);
  EXPECT_TRUE(reader->next());
  std::filesystem::resize_file(file, 2'000'000);
  EXPECT_THAT(complaint([&] { return read_all(*reader).size(); }), HasSubstr("cut short"));
}

TEST_F(Files, ThatArePipesAreReadToTheirEnd) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += "1\n";
  for (const std::string name : {"pipe", "pipe.txt"}) {
    ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    std::thread writer{[&] { write(name, content); }};
    EXPECT_EQ(read_column(path(name)).size(), 100'000u) << name;
    writer.join();
  }
  ASSERT_EQ(mkfifo(path("pipe.npy").c_str(), 0600), 0);
  std::thread writer{[&] { write("pipe.npy", npy(dict("<f8", "(2,)"), stored<double>({1, 2}))); }};
  EXPECT_THAT(doubles(read_column(path("pipe.npy"))), ElementsAre(1, 2));
  writer.join();
}

}  // namespace

}  // namespace samesum::harness
