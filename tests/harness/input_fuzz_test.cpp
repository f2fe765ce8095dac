/// Feeds mutated files to the readers: each of them must return, or throw an error of one printable line, and
/// allocate little memory. The size of the portions must not matter. SAMESUM_FUZZ_SECONDS (2 by default) is
/// the time for all tests together; SAMESUM_FUZZ_SEED seeds the mutations.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <random>

#include "harness/input_archives.hpp"

namespace {
std::size_t largest_allocation = 0;
}

// Records the largest allocation, to detect one whose size only a header claims.
[[gnu::noinline]] void* operator new(std::size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace samesum::harness {

namespace {

using Clock = std::chrono::steady_clock;

double setting(const char* name, double otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::strtod(value, nullptr) : otherwise;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words)
      : random_{static_cast<std::uint64_t>(setting("SAMESUM_FUZZ_SEED", 1))},
        seeds_{std::move(seeds)},
        words_{std::move(words)} {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::string operator()() {
    std::string file = any(seeds_);
    for (std::size_t count = below(6); count > 0; --count) mutate(file);
    // Without this, few mutated headers would be parsed as far as the dict.
    if (file.starts_with("\x93NUMPY") && below(2)) mend_header_length(file);
    return file;
  }

 private:
  const std::string& any(const std::vector<std::string>& list) { return list[below(list.size())]; }

  void mutate(std::string& file) {
    const std::size_t at = below(file.size() + 1), n = below(below(4) ? 4 : file.size() + 1);
    switch (below(10)) {
      case 0:
        file = file.substr(0, at);
        break;
      case 1:
        file.erase(at, n);
        break;
      case 2:
        file.insert(at, file, below(file.size() + 1), n);
        break;
      case 3:
        file.insert(at, n, static_cast<char>(below(256)));
        break;
      case 4:
        file.insert(at, any(words_));
        break;
      case 5:
        file.replace(at, n, any(words_));
        break;
      case 6: {
        const std::string& other = any(seeds_);
        file.replace(at, n, other, below(other.size() + 1), below(64));
        break;
      }
      case 7:
        replace_a_number(file, at);
        break;
      case 8:
        if (at < file.size()) file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        break;
      default:
        if (at < file.size()) file[at] = static_cast<char>(below(256));
    }
  }

  void replace_a_number(std::string& file, std::size_t at) {
    constexpr std::string_view digits = "0123456789";
    const std::size_t first = file.find_first_of(digits, at);
    if (first == std::string::npos) return;
    const std::size_t last = std::min(file.find_first_not_of(digits, first), file.size());
    const std::string numbers[] = {std::to_string(random_()), std::to_string(below(20)),
                                   "9223372036854775808", "4294967296"};
    file.replace(first, last - first, numbers[below(std::size(numbers))]);
  }

  void mend_header_length(std::string& file) {
    const std::size_t end = file.find('}');
    const std::size_t offset = file.size() > 6 && file[6] == 1 ? 10 : 12;
    if (end == std::string::npos || end + 2 < offset) return;
    file[8] = static_cast<char>((end + 2 - offset) & 255);
    file[9] = static_cast<char>((end + 2 - offset) >> 8);
    if (offset == 12) file[10] = file[11] = '\0';
  }

  std::mt19937_64 random_;
  std::vector<std::string> seeds_, words_;
};

constexpr int fuzz_tests = 6;

/// Reads mutants for a part of the time, and calls check(file, column) for those that the reader accepts.
/// `growth` is the largest number of bytes that a byte of the file may become.
template <class Read, class Check>
void fuzz(Mutator mutate, Read read, Check check, std::size_t growth = 16) {
  const auto end =
      Clock::now() + std::chrono::duration<double>{setting("SAMESUM_FUZZ_SECONDS", 2) / fuzz_tests};
  std::size_t taken = 0, refused = 0;
  while (Clock::now() < end && !testing::Test::HasFailure()) {
    const std::string file = mutate();
    const std::vector<char> exact(file.begin(), file.end());  // so that a sanitizer detects an overrun
    const std::size_t choice = mutate.below(2 * Formats::size);
    const FormatInfo* const format = choice < Formats::size ? &formats[choice] : nullptr;
    largest_allocation = 0;
    Column column{};
    const std::string message = complaint([&] {
      column = read(std::string_view{exact.data(), exact.size()}, format, portion_bytes);
      return column.format;
    });
    // An element has at least one byte and becomes at most 8, and a vector grows by doubling. A header of
    // .npy has at most 65548 bytes.
    EXPECT_LE(largest_allocation, growth * file.size() + 131072);
    const std::size_t portion = 1 + mutate.below(64);
    Column portions{};
    const std::string of_portions = complaint([&] {
      return portions = read({exact.data(), exact.size()}, format, portion), 0;
    });
    // Small portions find what is wrong in front of a damage first.
    if (message.find("compressed bytes") == message.npos) {
      EXPECT_EQ(of_portions, message) << "in portions of " << portion << " bytes";
    } else {
      EXPECT_FALSE(of_portions.empty());
    }
    EXPECT_EQ(portions.lost, column.lost) << "in portions of " << portion << " bytes";
    EXPECT_EQ(portions.further_lost, column.further_lost) << "in portions of " << portion << " bytes";
    EXPECT_EQ(portions.bytes, column.bytes) << "in portions of " << portion << " bytes";
    EXPECT_EQ(portions.notes, column.notes) << "in portions of " << portion << " bytes";
    for (const std::string& note : column.notes)
      for (const char c : note) EXPECT_TRUE(c >= ' ' && c <= '~') << note;
    for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
    if (message.empty()) {
      ++taken;
      ASSERT_NE(column.format, nullptr) << "the error has an empty message";
      EXPECT_TRUE(!format || column.format == format);
      EXPECT_EQ(column.bytes.size() % column.format->bytes, 0u);
      check(file, column);
    } else {
      ++refused;
      EXPECT_TRUE(message.starts_with("name:") && message.size() < 800) << message;
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << "with the file " << testing::PrintToString(file);
  }
  std::printf("%zu files accepted, %zu refused\n", taken, refused);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

constexpr auto any_column = [](const std::string&, const Column&) {};

TEST(AMutatedNpyFile, IsReadOrRefused) {
  std::vector<std::string> seeds;
  for (const std::string type : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})
    for (const std::string order : {"<", ">"})
      for (const int version : {1, 2, 3}) {
        const std::size_t bytes = static_cast<std::size_t>(type[1] - '0');
        seeds.push_back(
            npy(dict(order + type, "(2, 3)", version == 2), std::string(6 * bytes, '\1'), version));
        seeds.push_back(npy(dict(order + type, "(0,)"), "", version));
        seeds.push_back(npy(dict(order + type, "()"), std::string(bytes, '\0'), version));
      }
  const std::vector<std::string> words{"'descr'",
                                       "'shape'",
                                       "'fortran_order'",
                                       "True",
                                       "False",
                                       "(",
                                       ")",
                                       "{",
                                       "}",
                                       ",",
                                       "-1",
                                       "9223372036854775807",
                                       "4294967296, 4294967296",
                                       "0,",
                                       "1,",
                                       "2, 3",
                                       "'<f16'",
                                       "'|O'",
                                       "'<c8'",
                                       "[('a', '<f4')]",
                                       "\n",
                                       "\x1b",
                                       "''",
                                       "\"",
                                       "L",
                                       "\x93NUMPY\x01",
                                       "\xff\xff\xff\xff"};
  fuzz(
      Mutator{seeds, words},
      [](std::string_view file, const FormatInfo* format, std::size_t portion) {
        return parse_npy(as_bytes(file), "name", format, portion);
      },
      any_column);
}

/// Returns the numbers of a valid text, as strtod parses them.
std::vector<double> by_strtod(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  for (std::size_t at; (at = text.find('#')) != std::string::npos;)
    text.erase(at, std::min(text.find_first_of("\r\n", at), text.size()) - at);
  constexpr const char* between = " \t\v\f\r\n,;";
  std::vector<double> values;
  std::size_t first = 0;
  while ((first = text.find_first_not_of(between, first)) != std::string::npos) {
    const std::size_t last = std::min(text.find_first_of(between, first), text.size());
    values.push_back(std::strtod(text.substr(first, last - first).c_str(), nullptr));
    first = last;
  }
  return values;
}

TEST(AMutatedText, IsReadLikeStrtodOrRefused) {
  const std::vector<std::string> seeds{
      "1 2 3\n4,5;6\n",
      "# head\r\n0.1, -2e-3 ;+.5\r\ninf nan -Infinity # rest",
      "0x1.8p3 -0xffp-1080 0X.8 0x1.00000000000008p0",
      "1e400 -1e-400 1e999999999999 1e-400000000000 0e99 123456789012345678901234567890",
      "2.2250738585072011e-308 4.9e-324 2.4703282292062327e-324 1.7976931348623158e308 9007199254740993",
      "-123456789012345678901234567890123456789012345678901234567890123456789012345678 " +
          std::string(309, '1'),
      "\xef\xbb\xbf"
      "1.00000000000000011102230246251565404236316680908203125\n" +
          std::string(900, '7') + "e-900",
      "1,234.50\n  -12,345,678 # two\n#N/A 1.#INF\n9007199254740993.00 0x20000000000001\n",
  };
  const std::vector<std::string> words{",",
                                       ";",
                                       "#",
                                       " #",
                                       "#N/A",
                                       "#REF!",
                                       ",234",
                                       "\n",
                                       "\r\n",
                                       "\r",
                                       " ",
                                       ",,",
                                       "e",
                                       "E-",
                                       "e+30",
                                       "p",
                                       "p-1074",
                                       "0x",
                                       ".",
                                       "-",
                                       "+",
                                       "inf",
                                       "nan",
                                       "infinity",
                                       "1e-400000000000",
                                       "e-310",
                                       "0",
                                       "00000000000000000000",
                                       "9",
                                       "99999999999999999999",
                                       "\xef\xbb\xbf",
                                       "5e-324",
                                       "e99999999999999999999"};
  fuzz(
      Mutator{seeds, words},
      [](std::string_view file, const FormatInfo* format, std::size_t portion) {
        return parse_text(file, "name", format, portion);
      },
      [](const std::string& file, const Column& column) {
        const std::vector<double> expected = by_strtod(file);
        ASSERT_EQ(column.size(), expected.size());
        if (column.format != &format_info<fp64>()) return;
        const std::span<const double> values = column.values().as<double>();
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_TRUE(to_bits(values[i]) == to_bits(expected[i]) ||
                      (values[i] != values[i] && expected[i] != expected[i]))
              << values[i] << " for " << expected[i];
      });
}

TEST(AMutatedRawFile, IsReadOrRefused) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  fuzz(
      Mutator{{"", all, std::string(64, '\xff'), std::string(24, '\x7f')}, {"\x7f\xf0", "\xff\xff", "1"}},
      [](std::string_view file, const FormatInfo* format, std::size_t portion) {
        const FormatInfo& stored = formats[file.size() / 2 % Formats::size];
        return parse_raw(as_bytes(file), "name", stored, format, portion);
      },
      any_column);
}

TEST(AMutatedArchive, IsReadOrRefused) {
  const std::string a = npy(dict("<f4", "(2, 3)"), std::string(24, '\1')), b = npy(dict("<i8", "(0,)"), "");
  const std::vector<std::string> seeds{zip({{"a.npy", a}}), zip({{"a.npy", a, true}}),
                                       zip({{"a.npy", a}, {"b.npy", b, true}}, "a comment"),
                                       zip({{.name = "b.npy", .content = b, .zip64 = true}}, "", true),
                                       zip({{"a.npy", b}, {"a.npy", a}}) + "more"};
  const std::vector<std::string> words{"PK\1\2",
                                       "PK\3\4",
                                       "PK\5\6",
                                       "PK\6\6",
                                       "PK\6\7",
                                       std::string("\0\0", 2),
                                       std::string("\1\0", 2),
                                       std::string("\10\0", 2),
                                       "\xff\xff\xff\xff",
                                       "\xff\xff\xff\x7f",
                                       "a.npy",
                                       "\x1b"};
  fuzz(
      Mutator{seeds, words},
      [](std::string_view file, const FormatInfo* format, std::size_t portion) {
        return parse_npz(as_bytes(file), "name", file.size() % 2 ? "" : "a", format, portion);
      },
      any_column, 16 * 1032);  // deflate makes up to 1032 bytes of one
}

TEST(AMutatedTable, IsReadOrRefused) {
  const std::vector<std::string> seeds{"a,b\n1,2\n3,4\n",
                                       "a\tb\n1\t2\n\t4\n",
                                       "\"a, b\";\"b\"\r\n1;\"2\"\r\n# c\r\n",
                                       "1\n2\n9007199254740993\n",
                                       "# a,b\n1,2\n9007199254740993.,1e400\n",
                                       "#N/A,3\n#cats,4\n",
                                       "\xef\xbb\xbf"
                                       "b\n-1e5\n",
                                       "  a b \n 1  2\n"};
  const std::vector<std::string> words{",", ";", "\t",   "\"",    "\"\"", "\n",     "\r\n", "#",
                                       " ", "b", "\x1b", "1e400", "nan",  "\"\n\"", "\r",   "2"};
  const TableOptions choices[] = {{}, {"b"}, {"1"}, {"2", true}, {"", true}, {"b", false, "1"}};
  constexpr std::string_view extensions[] = {".csv", ".tsv", ".txt"};
  fuzz(
      Mutator{seeds, words},
      [&](std::string_view file, const FormatInfo* format, std::size_t portion) {
        return parse_table(file, "name", extensions[file.size() % 3],
                           choices[file.size() / 3 % std::size(choices)], format, portion);
      },
      any_column);
}

TEST(MutatedStandardInput, IsReadOrRefused) {
  const std::string array = npy(dict(">f2", "(2, 2)", true), std::string(8, '\1')),
                    archive = zip({{"a.npy", npy(dict("<f4", "(1,)"), "1234")}});
  const std::vector<std::string> seeds{npy(dict("<u8", "(3,)"), std::string(24, '\xff')),
                                       "1 2 3\n4",
                                       array,
                                       archive,
                                       gzip("1 2 3\n4"),
                                       gzip("1") + gzip(" 2"),
                                       gzip(array),
                                       gzip(archive)};
  fuzz(
      Mutator{seeds,
              {"\x93NUMPY", "\x93", "1", " ", "'<i8'", "(", gzip(""), "\x1f\x8b", std::string("\0\0", 2)}},
      [](std::string_view file, const FormatInfo* format, std::size_t portion) {
        return parse_pipe(as_bytes(file), "name", format, portion);
      },
      any_column, 16 * 1032);  // deflate makes up to 1032 bytes of one
}

}  // namespace

}  // namespace samesum::harness
