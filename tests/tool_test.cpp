/// Runs the command-line tool from a shell and checks what it prints, where, and its exit codes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "harness/input.hpp"
#include "harness/input_archives.hpp"
#include "harness/names.hpp"
#include "harness/schema.hpp"
#include "harness/text.hpp"
#include "samesum/catalogue/partial.hpp"
#include "samesum/samesum.hpp"
#include "tool_shell.hpp"

namespace samesum {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::write;

void write(const fs::path& path, Values x) {
  write(path, std::string{static_cast<const char*>(x.data), x.size * x.format->bytes});
}

class ShellWithData : public testing_support::ToolShell {
 public:
  ShellWithData() {
    write(work() / "numbers.txt", "1\n2.5\n-3\n");
    write(work() / "cancel.txt", "1e100 1 -1e100 1e-100 1e50 -1 -1e50\n");
    write(work() / "empty.txt", "");
    fs::create_directories(work() / "tree/notebooks");
    write(work() / "tree/notebooks/report.py", "");
    write_program("none/python3", "printf '/my/python3\\nplotly\\n'");
    write(work() / "bad.txt", "1\n2 three\n");
    const std::vector<std::byte> later = Partial{"exact/fp64", 5}.serialise();
    write(work() / "later.partial", {reinterpret_cast<const char*>(later.data()), later.size()});
    write(work() / "two.f32", "12341234");
    write(work() / "odd.f32", "12345");
    write(work() / "inf.txt", "inf 1 2\n");
    write(work() / "overflow.txt", "1.7e308 1.7e308\n");
    write(work() / "prices.csv", "day,price\nMon,1.5\nTue,2.5\n");
    write(work() / "sales.csv",
          "city,note,price\nOslo,,1e16\n\"New\tYork, NY\",x,2.5\nOslo,\"a,b\",1\nÅre,,-4\nOslo,,-1e16\n");
    write(work() / "prices.tsv", "day\tprice\nMon\t1.5\n");
    const std::vector<std::int64_t> integers{9007199254740993, -9007199254740992, 1, 0};
    const std::string matrix =
        harness::npy(harness::dict("<i8", "(2, 2)"), harness::stored<std::int64_t>(integers));
    write(work() / "wide.npy", matrix);
    write(work() / "two.npz", harness::zip({{"a.npy", matrix}, {"b.npy", matrix}}));
    write(work() / "one.npz", harness::zip({{"a.npy", matrix}}));
    const std::string other = harness::npy(harness::dict("<i8", "(1,)"), harness::stored<std::int64_t>({5}));
    write(work() / "twice.npz", harness::zip({{"a.npy", other}, {"a.npy", matrix}}) + "bytes behind it");
    write(work() / "zeros.txt", "-0 -0\n");
    write(work() / "ones.bf16",
          testing_support::Array{format_info<bf16>(), std::vector<double>(100000, 1)}.values());
    write(work() / "uniform.f32",
          testing_support::Array{format_info<fp32>(), rounded(testing_support::uniform(5000, 1))}.values());
  }

  /// Writes a program of the shell.
  void write_program(const std::string& name, const std::string& text) const {
    const fs::path path = work() / name;
    fs::create_directories(path.parent_path());
    write(path, "#!/bin/sh\n" + text + "\n");
    fs::permissions(path, fs::perms::owner_all);
  }

 private:
  static std::vector<double> rounded(std::vector<double> x) {
    for (double& e : x) e = static_cast<double>(static_cast<float>(e));
    return x;
  }
};

const ShellWithData& shell() {
  static const ShellWithData only;
  return only;
}

json run_json(const std::string& command) { return shell().run_json(command); }

// --- sum -----------------------------------------------------------------------------------------

struct Good {
  std::string command, out;
};
std::ostream& operator<<(std::ostream& out, const Good& g) { return out << g.command; }

class TheToolSums : public ::testing::TestWithParam<Good> {};

TEST_P(TheToolSums, AndPrintsOneNumber) {
  const Outcome o = shell().run(GetParam().command);
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, GetParam().out + "\n");
  EXPECT_THAT(o.err, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Data, TheToolSums,
    ::testing::Values(
        Good{"$T sum numbers.txt", "0.5"}, Good{"$T sum numbers.txt --hex", "0x1p-1"},
        Good{"$T sum cancel.txt", "1e-100"}, Good{"$T sum cancel.txt --method exact", "1e-100"},
        Good{"$T sum cancel.txt --method serial/plain/fp64", "0"},
        Good{"$T sum cancel.txt --method exact@reference", "1e-100"},
        Good{"$T sum cancel.txt --method exact/fp16", "0"}, Good{"$T sum empty.txt", "0"},
        Good{"$T sum inf.txt", "inf"}, Good{"$T sum zeros.txt", "-0"},
        Good{"$T sum zeros.txt --hex", "-0x0p+0"}, Good{"$T sum ones.bf16", "99840"},
        Good{"$T sum ones.bf16 --method exact/fp32", "100000"},
        Good{"$T sum ones.bf16 --method serial/plain/bf16", "256"},
        Good{"$T sum ones.bf16 --method serial/neumaier/bf16@cpu --threads 3", "512"},
        Good{"$T sum ones.bf16 --method serial/kahan/bf16@reference", "65536"},
        Good{"$T sum ones.bf16 --format fp64", "100000"}, Good{"seq 100 | $T sum -", "5050"},
        Good{"seq 100 | $T sum", "5050"}, Good{"$T sum <wide.npy", "2"}, Good{"$T sum </dev/null", "0"},
        Good{"seq 9 | $T mean --hex", "0x1.4p+2"}, Good{"$T max --column price <prices.csv", "2.5"},
        Good{"$T scatter_count --by day <prices.csv", "Mon\t1\nTue\t1"},
        Good{"seq 9 | $T sum --bound", "45 5e-15"},
        Good{"printf 'a,b\\n1,10\\n#DIV/0!,20\\n3,30\\n' | $T sum --column b", "60"},
        Good{"printf 'tag,n\\n#cats,3\\ndogs,4\\n' | $T scatter_add --by tag --column n",
             "#cats\t3\ndogs\t4"},
        Good{"printf '3,x # note\\n4,x\\n' | $T scatter_add --by 2 --column 1", "x # note\t3\nx\t4"},
        Good{"echo 0x20000000000001 -0x20000000000000 | $T sum", "1"}, Good{"$T sum twice.npz", "2"},
        Good{"$T sum twice.npz:a", "2"}, Good{"echo 0.1 | $T sum - --format fp16", "0.1"},
        Good{"echo 0.1 | $T sum - --format fp16 --hex", "0x1.998p-4"},
        Good{"echo nan -nan | $T sum -", "nan"}, Good{"$T sum --threads 0 numbers.txt", "0.5"},
        Good{"$T sum numbers.txt numbers.txt cancel.txt", "1"},
        Good{"cat numbers.txt | $T sum numbers.txt -", "1"},
        Good{"$T sum numbers.txt --bound", "0.5 5.55e-17"}, Good{"$T sum prices.csv --column price", "4"},
        Good{"$T max prices.csv --column 2 --header", "2.5"},
        Good{"$T sum prices.csv prices.tsv --column price --bound", "5.5 6.11e-16"},
        Good{"$T dot prices.csv prices.csv --column price", "8.5"},
        Good{"printf 'x y\\n1 2\\n' | $T sum - --column y", "2"}, Good{"$T sum two.npz:b", "2"},
        Good{"$T sum one.npz", "2"}, Good{"$T sum - <wide.npy", "2"}, Good{"cat wide.npy | $T sum -", "2"},
        Good{"$T sum wide.npy", "2"}, Good{"$T sum wide.npy --bound", "2 2.22e-16"},
        Good{"$T sum wide.npy --axis rows", "1\n1"},
        Good{"$T sum wide.npy --axis columns", "9007199254740994\n-9007199254740992"},
        Good{"$T sum wide.npy --format fp64", "1"},
        Good{"echo 9007199254740993 -9007199254740992 | $T sum -", "1"},
        Good{"printf '12345678901234567890123456789012345\\n-12345678901234567890123456789012344' | $T sum -",
             "1"},
        Good{"echo 10000000000000000000000000000000000000001 -10000000000000000000000000000000000000000 | "
             "$T sum - --axis 0",
             "1"},
        Good{"printf '#a,b\\n1,2\\n3,4\\n' | $T sum - --column 2 --header", "6"},
        Good{"cat one.npz | $T sum -", "2"}, Good{"$T sum - <one.npz", "2"},
        Good{"printf '1 2 4' | $T mean -", "2.3333333333333335"},
        Good{"printf '1 2 4' | $T mean - --hex", "0x1.2aaaaaaaaaaabp+1"}, Good{"$T mean ones.bf16", "1"},
        Good{"$T dot numbers.txt numbers.txt", "16.25"}, Good{"printf '3 4' | $T norm -", "5"},
        Good{"$T prod numbers.txt", "-7.5"}, Good{"$T max numbers.txt", "2.5"},
        Good{"$T argmin numbers.txt", "2"}, Good{"$T argmax empty.txt", "-1"},
        Good{"$T mean empty.txt", "nan"}, Good{"printf '0 0' | $T logsumexp - --format fp32", "0.6931472"},
        Good{"printf '1 2 4' | $T moments - --ddof 1",
             "mean 2.3333333333333335\nvariance 2.3333333333333335\n"
             "standard_deviation 1.5275252316519468"}));

TEST(TheTool, LeavesOutRecordsAndSaysHowMany) {
  const std::string table = "printf 'x,w\\n0.1,3\\n0.2,1\\n,5\\n4,NA\\n1e16,0\\n' | $T ";
  const Outcome skipped = shell().run(table + "sum --column x --skip-missing");
  EXPECT_EQ(skipped.out, "1.0000000000000004e+16\n");
  EXPECT_EQ(skipped.err, "samesum: standard input: 1 record was left out: the number is missing\n");
  EXPECT_EQ(shell().run(table + "sum --column x --where 'w >= 1'").out, "");  // x is missing in one of them
  EXPECT_EQ(shell().run(table + "argmax --column x --where 'w < 5'").out, "2\n");
  EXPECT_EQ(shell().run(table + "sum --column x --weights w --skip-missing").out, "0.5\n");
  EXPECT_EQ(shell().run(table + "mean --column x --weights w --skip-missing").out, "0.125\n");
  EXPECT_EQ(shell().run("printf 'x,w\\n-1,1\\n3,-4\\n' | $T mean --column x --weights w --json").out,
            "{\"operation\":\"mean with weights\",\"n\":2,\"value\":4.333333333333333,\"bits\":"
            "\"0x4011555555555555\",\"promise\":\"order_free\"}\n");
}

TEST(TheTool, PairsRecordsOfOneLine) {
  const auto prints = [](const std::string& x, const std::string& y, const std::string& command) {
    write(shell().work() / "x.csv", "i,v\n" + x);
    write(shell().work() / "y.csv", "i,v\n" + y);
    const Outcome o = shell().run("$T " + command + " x.csv y.csv --column v");
    return o.code == 0 ? o.out : o.err;
  };
  const std::string holes = "1,1\n2,\n3,3\n", others = "1,\n2,5\n3,6\n";
  EXPECT_EQ(prints(holes, others, "dot --skip-missing"), "18\n");
  EXPECT_EQ(prints(others, holes, "dot --skip-missing --axis 0"), "18\n");
  EXPECT_EQ(prints("1,\n2,2\n3,3\n", others, "dot --skip-missing"), "28\n");
  EXPECT_EQ(prints("1,7\n2,5\n3,6\n", "1,\n2,\n3,3\n", "dot --skip-missing"), "18\n");
  EXPECT_EQ(prints("1,1\n", "1,\n", "dot --skip-missing"), "0\n") << "no pair is left";
  EXPECT_EQ(prints("1,1\n2,2\n3,3\n", "3,10\n1,20\n2,30\n", "dot --where 'i >= 2'"), "90\n");
  EXPECT_THAT(prints(holes, others, "compare --operation dot --methods exact --skip-missing"),
              HasSubstr("exact dot product 18,"));
  EXPECT_THAT(prints(holes, others, "choose --operation dot --relative-error 1e-6 --json --skip-missing"),
              HasSubstr("\"length\":1,"));
  EXPECT_EQ(shell().run("$T dot x.csv y.csv --column v --skip-missing").err,
            "samesum: x.csv: 1 record was left out: the number is missing\n"
            "samesum: y.csv: 1 record was left out: the number is missing\n"
            "samesum: x.csv, y.csv: 1 pair is left: a record that one file leaves out is left out of both\n");
  for (const std::string longer : {"1,1\n2,2\n3,\n", "1,1\n2,2\n3,3\n"})
    EXPECT_THAT(prints("1,1\n2,2\n", longer, "dot --skip-missing"),
                HasSubstr("has 3 records, and the first file 2"));
  write(shell().work() / "x.npy",
        harness::npy(harness::dict("<f8", "(3,)"), harness::stored<double>({NAN, 5, 6})));
  EXPECT_EQ(shell().run("printf 'v\n1\n2\nNA\n' >v.csv; $T dot x.npy v.csv --column v").code, 2);
  EXPECT_EQ(shell().run("printf '1\n2\nNA\n' >v.csv; $T dot x.npy v.csv --skip-missing").out, "10\n");
  EXPECT_EQ(shell().run("$T dot v.csv x.npy --skip-missing").out, "10\n");
}

TEST(TheTool, PairsTheLinesOfTablesOfOneColumnWithEmptyOnes) {
  write(shell().work() / "x.csv", "v\n1\n\n3\n\n");
  write(shell().work() / "y.csv", "v\n\n2\n4\n");
  write(shell().work() / "z.csv", "v\n5\n\n7\n");
  EXPECT_EQ(shell().run("$T dot x.csv z.csv --column v").out, "26\n");
  EXPECT_EQ(shell().run("$T dot x.csv y.csv --column v --skip-missing").out, "12\n");
  EXPECT_THAT(shell().run("$T dot x.csv y.csv --column v").err,
              HasSubstr("its empty lines are others than those of the first file; pass --skip-missing"));
}

TEST(TheTool, LeavesNaNsOfArraysOutOnRequest) {
  const std::string numbers = harness::stored<double>({1, NAN, 2.5, NAN, -3, 7});
  write(shell().work() / "n.npy", harness::npy(harness::dict("<f8", "(6,)"), numbers));
  write(shell().work() / "n.npz", harness::zip({{"a.npy", read(shell().work() / "n.npy")}}));
  write(shell().work() / "n.f64", numbers);
  write(shell().work() / "matrix.npy", harness::npy(harness::dict("<f8", "(2, 3)"), numbers));
  const std::string left_out = ": 2 elements were left out: NaN\n";
  for (const std::string file : {"n.npy", "n.npz", "n.f64", "matrix.npy"}) {
    const Outcome o = shell().run("$T sum " + file + " --skip-missing");
    EXPECT_EQ(o.out, "7.5\n") << file;
    EXPECT_EQ(o.err, "samesum: " + file + left_out);
    EXPECT_EQ(shell().run("$T sum " + file).out, "nan\n");
    EXPECT_EQ(shell().run("$T mean " + file + " --skip-missing --bound").out, "1.875 2.08e-16\n") << file;
  }
  EXPECT_EQ(shell().run("cat n.npy | $T max --skip-missing").err, "samesum: standard input" + left_out);
  EXPECT_EQ(shell().run("$T argmax n.npy --skip-missing").out, "3\n");
  EXPECT_EQ(shell().run("$T sum n.npy n.f64 --skip-missing").out, "15\n");
  EXPECT_EQ(shell().run("$T sum wide.npy --skip-missing").out, "2\n") << "integers stay exact";
  EXPECT_EQ(shell().run("$T sum wide.npy --skip-missing --axis rows").out, "1\n1\n");
  EXPECT_EQ(shell()
                .run("$T sum n.f64 --skip-missing --save-partial n.partial && cat n.f64 n.f64 >m.f64 && "
                     "$T sum m.f64 --skip-missing --resume n.partial")
                .out,
            "7.5\n15\n");
  for (const std::string axis : {"sum --axis rows", "softmax --output y.npy"})
    EXPECT_EQ(shell().run("$T " + axis + " matrix.npy --skip-missing").err,
              "samesum: --skip-missing: without its NaNs, an array of 2 axes has none; leave out "
              "--skip-missing, or reduce all elements\n");
}

TEST(TheTool, ReadsWhatAPythonWritesOfParquetAndArrowFiles) {
  write(shell().work() / "t.parquet", "PAR1");
  write(shell().work() / "t.arrow", "ARROW1");
  const std::string table = "\"k\",\"v\"\n\"a\",\"1.5\"\n\"a\",\"\"\n\"\",\"0.10000000149011612\"\n";
  shell().write_program("good/python3", "echo \"$3 $4 $5 $6 $7\" >arguments; printf 'fp32\\n" + table + "'");
  const auto run = [](const std::string& arguments) {
    return shell().run("PATH=good:$PATH $T " + arguments);
  };
  const Outcome null = run("sum t.parquet --column v");
  EXPECT_EQ(null.code, 2);
  EXPECT_EQ(null.err,
            "samesum: t.parquet: record 2: the number is null; pass --skip-missing to leave out such "
            "records, or give it a number\n");
  EXPECT_EQ(read(shell().work() / "arguments"), "t.parquet parquet v  \n");
  EXPECT_EQ(run("sum t.arrow --column v --skip-missing").out, "1.6\n");
  EXPECT_EQ(read(shell().work() / "arguments"), "t.arrow arrow v  \n");
  EXPECT_EQ(run("scatter_add t.parquet --by k --column 2 --skip-missing --where 'v > 0'").out,
            "a\t1.5\n\t0.1\n");
  EXPECT_EQ(read(shell().work() / "arguments"), "t.parquet parquet 2 k v\n");
  EXPECT_EQ(run("dot t.parquet t.arrow --column v --skip-missing").out, "2.26\n");
  EXPECT_THAT(run("sum t.parquet").err, HasSubstr("t.parquet: has 2 columns: 'k', 'v'; choose one"));
  shell().write_program("bad/python3",
                        "printf '\\n\"v\"\\n\"1\"\\n'; echo note >&2; echo it broke >&2; exit 1");
  EXPECT_EQ(shell().run("PATH=bad:$PATH $T sum t.parquet").err, "samesum: t.parquet: it broke\n");
  EXPECT_EQ(shell().run("PATH=/nowhere $T sum t.parquet").err,
            "samesum: t.parquet: python3 cannot be started: No such file or directory\n");
  EXPECT_EQ(
      shell().run("cat t.parquet | $T sum").err,
      "samesum: standard input: begins as a .parquet file does, which is not read from a pipe; save and "
      "name it\n");
  EXPECT_THAT(shell().run("gzip -c t.arrow >t.arrow.gz; $T sum t.arrow.gz").err, HasSubstr("decompress it"));
}

TEST(TheTool, NamesTheExtensionOfAFileThatIsNamedAsAnother) {
  shell().run("gzip -c numbers.txt >zipped.csv; gzip -c wide.npy >zipped.npy");
  for (const std::string file : {"zipped.csv", "zipped.npy"})
    EXPECT_EQ(shell().run("$T sum " + file).err,
              "samesum: " + file +
                  ": is compressed by gzip; let its name end in .gz, or decompress it with gzip -d\n");
  for (const std::string extension : {".npy", ".npz"}) {
    shell().run("cp " + std::string{extension == ".npy" ? "wide.npy" : "one.npz"} + " array.txt");
    EXPECT_EQ(shell().run("$T sum array.txt").err, "samesum: array.txt: begins as a " + extension +
                                                       " file does; if it is one, let its name end in " +
                                                       extension + "\n");
  }
  shell().run("printf '\\037\\213\\000\\000' >raw.f32");
  EXPECT_EQ(shell().run("$T sum raw.f32").code, 0) << "raw numbers may be anything";
}

TEST(TheToolsSum, OfWideIntegersCountsEachOnce) {
  const json sum = run_json("$T sum wide.npy --json");
  EXPECT_EQ(sum["n"], 4);
  EXPECT_EQ(sum["value"], 2);
  EXPECT_EQ(sum["error_ulps"], 0);
  EXPECT_EQ(run_json("$T sum wide.npy --axis rows --json")["n"], 2);
}

TEST(TheTool, SaysWhatReadingATextChanges) {
  const std::string rounded =
      "samesum: standard input: line 2, column 1: '9007199254740993.' was rounded to fp64; "
      "without the point, samesum sum with the method exact adds it unrounded\n";
  write(shell().work() / "point.txt", "1\n9007199254740993.\n");
  for (const std::string command :
       {"sum", "sum --json", "sum --axis 0", "sum --bound", "sum --method tree/plain/fp64",
        "sum --method atomic/plain/fp64", "sum --save-partial point.partial", "sum --column 1", "mean",
        "norm --json", "cumsum", "cumsum --output point.npy", "scatter_add --by 1 --column 1",
        "scatter_max --by 1 --column 1 --json", "compare --methods exact", "choose - --ulps 1"}) {
    const Outcome o = shell().run("$T " + command + " <point.txt");
    EXPECT_EQ(o.code, 0) << command << o.err;
    EXPECT_EQ(o.err, rounded) << command;
  }
  const auto says = [](const std::string& command) { return shell().run("$T " + command).err; };
  EXPECT_THAT(says("dot point.txt point.txt"), HasSubstr("samesum: point.txt: line 2, column 1: '9007"));
  EXPECT_EQ(lines(says("sum point.txt numbers.txt point.txt")).size(), 2u) << "a line per file";
  EXPECT_EQ(
      shell().run("echo 2 1e400 | $T max").err,
      "samesum: standard input: line 1, column 3: '1e400' is beyond the largest fp64 and was read as inf\n");
  EXPECT_EQ(shell().run("printf '999.50\\n1,234.50' | $T sum").err,
            "samesum: standard input: line 2, column 1: '1,234.50' was read as 2 numbers; if ',' separates "
            "thousands, remove it\n");
  EXPECT_THAT(says("sum point.txt --format fp64"), IsEmpty());
}

TEST(TheTool, ReadsStandardInputIfNoFileIsNamed) {
  std::set<std::string> done;
  for (const Method& m : methods()) {
    if (m.inputs == 2 || !done.insert(m.operation).second) continue;
    const std::string options = m.takes_keys ? std::string{" --by 1"} + (m.inputs == 0 ? "" : " --column 1")
                                : m.takes_window ? " --format fp32 --window 3"
                                : m.keeps_format ? " --format fp32 --output y.npy --json"
                                                 : " --format fp32";
    const std::string command = "seq 9 | $T " + m.operation + options;
    const Outcome o = shell().run(command);
    EXPECT_EQ(o.code, 0) << command << o.err;
    EXPECT_EQ(o.out, shell().run(command + " -").out) << command;
  }
  EXPECT_THAT(shell().run("seq 9 | $T compare --methods exact").out, StartsWith("-: 9 elements of fp64"));
}

TEST(TheTool, DoesNotWaitForATerminalUnlessItIsNamed) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal), from_terminal = " <" + name;
  const int kept_open = open(name.c_str(), O_RDWR | O_NOCTTY);  // keeps what is typed
  ASSERT_GE(kept_open, 0);
  for (const std::string command : {"sum", "mean", "moments", "cumsum", "scatter_count --by 1", "compare"}) {
    const Outcome o = shell().run("$T " + command + from_terminal);
    EXPECT_EQ(o.code, 2) << command;
    EXPECT_EQ(o.err,
              "samesum: FILE is missing; name one, pipe data to standard input, or give - to type them\n");
  }
  const std::string typed = "1 2\n\4";  // the end of the input, as Ctrl-D
  ASSERT_EQ(::write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  EXPECT_EQ(shell().run("$T sum -" + from_terminal).out, "3\n");
  close(kept_open);
  close(terminal);
}

TEST(TheTool, ReadsFilesThatGzipCompressedOrNamesThePipe) {
  shell().run(
      "mkdir gz; cp numbers.txt prices.csv prices.tsv wide.npy one.npz two.f32 ones.bf16 gz; gzip gz/*");
  if (const Outcome o = shell().run("$T sum gz/numbers.txt.gz"); o.code != 0) {  // built without zlib
    EXPECT_THAT(o.err, HasSubstr("gz/numbers.txt.gz: is compressed, and this tool was built without zlib"));
    EXPECT_THAT(o.err, HasSubstr("gzip -dc FILE.gz | samesum sum -"));
    EXPECT_EQ(shell().run("gzip -dc gz/numbers.txt.gz | $T sum -").out, "0.5\n");
    return;
  }
  for (const std::string file : {"numbers.txt", "wide.npy", "one.npz", "two.f32", "ones.bf16"})
    for (const std::string command : {"sum ", "mean ", "max ", "sum --axis 0 --method exact "})
      EXPECT_EQ(shell().run("$T " + command + "gz/" + file + ".gz").out,
                shell().run("$T " + command + file).out)
          << command << file;
  EXPECT_EQ(shell().run("$T sum gz/prices.csv.gz gz/prices.tsv.gz --column price").out, "5.5\n");
  EXPECT_EQ(shell().run("$T scatter_add gz/prices.csv.gz --by day --column price").out,
            "Mon\t1.5\nTue\t2.5\n");
  for (const std::string file : {"numbers.txt", "wide.npy", "one.npz"})
    EXPECT_EQ(shell().run("$T sum <gz/" + file + ".gz").out, shell().run("$T sum " + file).out) << file;
  EXPECT_EQ(shell().run("mv gz/numbers.txt.gz gz/NUMBERS.TXT.GZ; $T sum gz/NUMBERS.TXT.GZ").out, "0.5\n");
  const Outcome cut = shell().run("head -c 30 gz/NUMBERS.TXT.GZ >gz/cut.txt.gz; $T sum gz/cut.txt.gz");
  EXPECT_EQ(cut.err, "samesum: gz/cut.txt.gz: damaged: its compressed bytes are cut short\n");
  EXPECT_THAT(shell().run("$T sum gz/wide.npy.gz --column 1").err, HasSubstr("and this is a .npy file"));
  EXPECT_THAT(shell().run("cp numbers.txt gz/plain.txt.gz; $T sum gz/plain.txt.gz").err,
              HasSubstr("gz/plain.txt.gz: damaged: its compressed bytes are not valid"));
  EXPECT_EQ(shell()
                .run("seq 300000 | gzip | $T sum --save-partial gz/p && seq 300009 | gzip >gz/s.txt.gz && "
                     "$T sum gz/s.txt.gz --resume gz/p")
                .out,
            "45000150000\n45002850045\n");
  fs::remove_all(shell().work() / "gz");
}

TEST(TheTool, SaysThatItRoundsIntegers) {
  for (const std::string command :
       {"mean wide.npy", "max - <wide.npy", "sum wide.npy --method tree/plain/fp64",
        "sum wide.npy --method atomic/plain/fp64", "compare wide.npy --methods exact", "norm wide.npy --json",
        "sum wide.npy --axis rows --method pairwise/plain/fp64"}) {
    const Outcome o = shell().run("$T " + command);
    EXPECT_EQ(o.code, 0) << command;
    EXPECT_EQ(o.err,
              "samesum: 1 integer was rounded to fp64 before the computation; samesum sum with the method "
              "exact adds integers unrounded\n")
        << command;
  }
  write(shell().work() / "ids.csv", "id,w\n9007199254740992,1\n9007199254740993,2\n9007199254740994.0,4\n");
  for (const std::string weights : {"--column id --weights w", "--column w --weights id"})
    for (const std::string command : {"sum ", "mean ", "sum --json "})
      EXPECT_EQ(shell().run("$T " + command + "ids.csv " + weights).err,
                "samesum: 1 integer was rounded to fp64 before the computation; without --weights, sum adds "
                "them unrounded\n");
  EXPECT_EQ(shell().run("$T sum ids.csv --column w --where 'id == 9007199254740993'").out, "2\n");
  EXPECT_EQ(shell().run("$T sum ids.csv --column w --where 'id > 9007199254740992'").out, "6\n");
  EXPECT_THAT(shell().run("$T mean wide.npy --format fp64").err, IsEmpty());
  EXPECT_THAT(shell().run("echo 12345678901234567890123456789012345 | $T max -").err,
              HasSubstr("1 integer was rounded to fp64"));
}

TEST(TheToolsSum, AsJsonIsOneObjectWithEveryKey) {
  const json o = run_json("$T sum cancel.txt --json");
  EXPECT_EQ(o["method"], "sum/exact/fp64@cpu");
  EXPECT_EQ(o["input_format"], "fp64");
  EXPECT_EQ(o["n"], 7);
  EXPECT_EQ(o["value"], 1e-100);
  EXPECT_EQ(o["bits"], "0x2b2bff2ee48e0530");
  EXPECT_EQ(o["truth"], o["value"]);
  EXPECT_EQ(o["truth_bits"], o["bits"]);
  EXPECT_LE(o["error_ulps"], 0.5);
  EXPECT_GE(o["relative_error"], 0);
  EXPECT_GT(o["bound"], 0);
  EXPECT_GT(o["condition"], 1e199);
  EXPECT_EQ(o["promise"], "order_free");
}

TEST(TheToolsSum, AsJsonHasTheFormatOfItsMethod) {
  const json o = run_json("$T sum ones.bf16 --method tree/plain/fp16 --json");
  EXPECT_EQ(o["input_format"], "bf16");
  EXPECT_EQ(o["bits"].get<std::string>().size(), 6u);
  EXPECT_EQ(o["truth_bits"], "0x7c00");
  EXPECT_TRUE(o["truth"].is_null());
  EXPECT_EQ(o["condition"], 1);
}

TEST(TheToolsSum, AsJsonHasNullForNumbersThatAreNotFinite) {
  const json o = run_json("$T sum inf.txt --json");
  for (const char* key : {"value", "truth", "bound", "condition"}) EXPECT_TRUE(o[key].is_null()) << key;
  EXPECT_EQ(o["bits"], "0x7ff0000000000000");
  EXPECT_EQ(o["error_ulps"], 0);
}

// --- sums of files of several portions -----------------------------------------------------------

constexpr std::size_t several_portions = 300'001;

/// Writes the first n elements to NAME.f64, NAME.npy and NAME.txt.
void write_files(const std::string& name, const std::vector<double>& x, std::size_t n) {
  const testing_support::Array elements{format_info<fp64>(),
                                        {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)}};
  const std::string raw{static_cast<const char*>(elements.values().data), n * sizeof(double)};
  const std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(n) + ",)}\n";
  std::string text;
  for (const double e : elements.values().as<double>())
    text += harness::shortest_decimal(Number::of(e)) + '\n';
  write(shell().work() / (name + ".f64"), raw);
  write(shell().work() / (name + ".npy"),
        std::string{"\x93NUMPY\1\0", 8} + static_cast<char>(header.size()) + '\0' + header + raw);
  write(shell().work() / (name + ".txt"), text);
}

class EveryFileOfSeveralPortions : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    write_files("all", elements(), several_portions);
    write_files("first", elements(), several_portions / 2);
  }
  static void TearDownTestSuite() {
    for (const std::string name : {"all", "first"})
      for (const std::string type : {".f64", ".npy", ".txt"}) fs::remove(shell().work() / (name + type));
  }
  static const std::vector<double>& elements() {
    static const std::vector<double> x = testing_support::wide(several_portions, 40, 1);
    return x;
  }
  static std::string expected_sum() {
    static const testing_support::Array x{format_info<fp64>(), elements()};
    return harness::hexadecimal(find(GetParam(), {.format = "fp64"})(x.values())) + '\n';
  }
  /// Sums a file with this method.
  static Outcome sum(const std::string& arguments) {
    return shell().run("$T sum " + arguments + " --threads 3 --hex --method " + GetParam());
  }
};

TEST_P(EveryFileOfSeveralPortions, HasTheSumThatTheLibraryReturnsForItsElements) {
  const std::string expected = expected_sum();
  for (const char* file : {"all.f64", "all.npy", "all.txt", "- <all.txt"}) {
    const Outcome o = sum(file);
    EXPECT_EQ(o.out, expected) << file << o.err;
  }
}

TEST_P(EveryFileOfSeveralPortions, HasTheSameSumIfTheRunIsResumed) {
  const std::string expected = expected_sum();
  for (const std::string type : {".f64", ".npy", ".txt"}) {
    EXPECT_EQ(sum("first" + type + " --save-partial state").code, 0) << type;
    EXPECT_EQ(sum("all" + type + " --resume state").out, expected) << type;
    const Outcome both = sum("all" + type + " --resume state --save-partial state");
    EXPECT_EQ(both.out, expected) << type << both.err;
    EXPECT_EQ(sum("all" + type + " --resume state").out, expected) << type << ", of which nothing is left";
    fs::remove(shell().work() / "state");
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryFileOfSeveralPortions,
                         ::testing::Values("exact", "tree/plain/fp64", "pairwise/plain/fp64",
                                           "serial/plain/fp64", "canonical128/plain/fp64", "tree/kahan/fp32",
                                           "serial/kahan/fp32", "tree/double_word/fp64",
                                           "tree/plain/bf16@reference"),
                         [](const auto& method) {
                           std::string name = method.param;
                           std::erase_if(name,
                                         [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

TEST(TheToolsSum, OfArrivalOrderTakesFilesOfSeveralPortions) {
  write(shell().work() / "ones.f32",
        testing_support::Array{format_info<fp32>(), std::vector<double>(several_portions, 1)}.values());
  EXPECT_EQ(shell().run("$T sum ones.f32 --method atomic/plain/fp32").out, "300001\n");
}

TEST(TheToolsSum, AsJsonComparesWithTheExactSumOfAllPortions) {
  const std::vector<double> x = testing_support::wide(several_portions, 40, 2);
  write(shell().work() / "wide.f64", testing_support::Array{format_info<fp64>(), x}.values());
  const json sum = run_json("$T sum wide.f64 --method tree/plain/fp64 --json");
  const json compared = run_json("$T compare wide.f64 --methods tree/plain/fp64 --json")["methods"][0];
  for (const auto& [key, value] : sum.items()) EXPECT_EQ(value, compared[key]) << key;
  fs::remove(shell().work() / "wide.f64");
}

TEST(TheToolsSum, IsPrintedIfItsPartialCannotBeSaved) {
  const Outcome o = shell().run("$T sum numbers.txt --save-partial /dev/full");
  EXPECT_EQ(o.out, "0.5\n");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("/dev/full"));
}

TEST(TheToolsSum, MayNameAPartialThatDoesNotExistYetToResumeAndToSave) {
  const std::string both = "$T sum numbers.txt --resume ./new.partial --save-partial new.partial";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(shell().run(both).out, "0.5\n");
  fs::remove(shell().work() / "new.partial");
}

TEST(TheToolsSum, ThatWasKilledIsResumedWithTheSameBits) {
  const std::string pipe = shell().work() / "slow.f64", file = shell().work() / "whole.f64",
                    partial = shell().work() / "killed.partial", method = "tree/kahan/fp32";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const pid_t tool = fork();
  if (tool == 0) {
    execl(SAMESUM_TOOL, "samesum", "sum", pipe.c_str(), "--save-partial", partial.c_str(), "--method",
          method.c_str(), nullptr);
    _exit(127);
  }
  std::ofstream to_tool{pipe, std::ios::binary}, to_file{file, std::ios::binary};
  const auto write_portion = [&](std::ofstream& out, std::uint64_t seed) {
    const std::vector<double> x = testing_support::uniform(harness::portion_bytes / sizeof(double), seed);
    out.write(reinterpret_cast<const char*>(x.data()), harness::portion_bytes).flush();
  };
  std::uint64_t portions = 0;
  while (!fs::exists(partial)) {
    write_portion(to_tool, portions);
    write_portion(to_file, portions++);
    // Keeps the file short: the tool first saves after a second.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  kill(tool, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(tool, &status, 0), tool);
  EXPECT_TRUE(WIFSIGNALED(status));
  for (int i = 0; i < 3; ++i) write_portion(to_file, portions++);
  const std::string saved = read(partial);
  const std::uint64_t covered = Partial::deserialise(std::as_bytes(std::span{saved})).end();
  EXPECT_GT(covered, 0u);
  EXPECT_LT(covered, portions * harness::portion_bytes / sizeof(double));
  const std::string command = "$T sum whole.f64 --hex --method " + method;
  EXPECT_EQ(shell().run(command + " --resume killed.partial").out, shell().run(command).out);
  for (const std::string& path : {pipe, file, partial}) fs::remove(path);
}

/// Returns the peak of the resident memory, in MB, of a command that prints `out`. It counts all processes of
/// the command, and what this process needs itself.
long peak_megabytes(const std::string& command, const std::string& out) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string checked =
        "cd '" + shell().work().string() + "' && test \"$(" + command + ")\" = " + out;
    execl("/bin/sh", "sh", "-c", checked.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0) << command;
  return usage.ru_maxrss / 1024;
}

TEST(TheToolsSum, NeedsLittleMemoryForALongFile) {
  if (*SAMESUM_SANITIZE) GTEST_SKIP() << "sanitizers need memory themselves";
  const fs::path file = shell().work() / "zeros.f64";
  write(file, "");
  fs::resize_file(file, 100'000'000);
  EXPECT_LT(peak_megabytes("$T sum zeros.f64", "0"), 64);
  fs::remove(file);
}

TEST(TheToolsSum, NeedsLittleMemoryForALongText) {
  if (*SAMESUM_SANITIZE) GTEST_SKIP() << "sanitizers need memory themselves";
  // The text would need 200 MB, its numbers 80 MB, and the process of the tests, which counts, may have 50
  // MB.
  EXPECT_LT(peak_megabytes("yes 0.00000000000000001 | head -c 200000000 | $T sum -", "1e-10"), 64);
}

// --- list ----------------------------------------------------------------------------------------

TEST(TheToolsList, NamesEveryMethodAndWhatIsNotSupported) {
  const json list = run_json("$T list --json");
  ASSERT_EQ(list["methods"].size(), methods().size());
  for (std::size_t i = 0; i < methods().size(); ++i) {
    const json& entry = list["methods"][i];
    const Method& v = methods()[i];
    EXPECT_EQ(entry["operation"], v.operation);
    EXPECT_EQ(entry["name"], v.name);
    EXPECT_EQ(entry["promise"], name_of(v.promise));
    EXPECT_EQ(entry["height"], v.height(1 << 20).total());
    EXPECT_EQ(entry["state_bytes"], v.state_bytes);
    EXPECT_TRUE(entry["order"].is_null() == v.order.empty());
  }
  ASSERT_EQ(list["unsupported"].size(), unsupported().size());
  for (const json& u : list["unsupported"]) EXPECT_FALSE(u["reason"].get<std::string>().empty()) << u["name"];
}

TEST(TheToolsList, OfAllMethodsIsReadableAt80Columns) {
  const Outcome o = shell().run("$T list --all");
  EXPECT_EQ(o.code, 0);
  for (const Method& v : methods()) EXPECT_THAT(o.out, HasSubstr(v.name + ' '));
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
}

/// The words that a text in short stands for: "tree/(plain kahan) exact" is tree/plain, tree/kahan and exact.
std::vector<std::string> spelled_out(const std::string& in_short) {
  std::vector<std::string> all;
  std::istringstream words{in_short};
  for (std::string word, next; words >> word; all.insert(all.end(), 1, word))
    while (std::count(word.begin(), word.end(), '(') > std::count(word.begin(), word.end(), ')') &&
           words >> next)
      word += ' ' + next;
  for (std::size_t i = 0; i < all.size();) {
    const std::size_t begin = all[i].find('('), end = all[i].find(')');
    if (begin == std::string::npos) {
      ++i;
      continue;
    }
    const std::string before = all[i].substr(0, begin), after = all[i].substr(end + 1);
    std::istringstream choices{all[i].substr(begin + 1, end - begin - 1)};
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::string choice; choices >> choice;) all.push_back(before + choice + after);
  }
  return all;
}

TEST(TheToolsList, IsShortAndHasTheNamesOfAllMethods) {
  const Outcome o = shell().run("$T list");
  EXPECT_EQ(o.code, 0);
  const std::vector<std::string> all = lines(o.out);
  EXPECT_LE(all.size(), 66u);
  std::set<std::string> expected, got;
  for (const Method& m : methods()) expected.insert(m.name.substr(0, m.name.find('@')));
  std::string operation, its_formats, names;
  const auto take_entry = [&] {
    if (its_formats.starts_with("all")) its_formats = harness::format_names(" ");
    for (const std::string& name : spelled_out(names))
      for (const std::string& format : spelled_out(its_formats))
        got.insert(operation + (name == "-" ? "" : '/' + name) + '/' + format);
    names.clear();
  };
  for (const std::string& line : all) {
    EXPECT_LE(line.size(), 80u);
    if (line.starts_with("(a b)")) break;
    if (line.size() < 30 || line.starts_with("operation ")) continue;  // a heading
    if (line[19] != ' ') {
      take_entry();
      if (line[0] != ' ') operation = line.substr(0, line.find(' '));
      its_formats = line.substr(19, 9);
    }
    names += line.substr(28);
  }
  take_entry();
  EXPECT_EQ(got, expected);
}

TEST(TheToolsList, AsJsonFitsTheSchema) {
  EXPECT_EQ(harness::schema().problem(run_json("$T list --json"), "catalogue"), "");
}

TEST(TheToolsList, NamesTheFormatsThatAMethodTakes) {
  EXPECT_THAT(shell().run("$T list 'mean/*@cpu'").out,
              AllOf(HasSubstr("mean: "), ContainsRegex("mean/tree/plain/fp32@cpu .*  not fp64\n"),
                    ContainsRegex("mean/tree/plain/fp64@cpu .*  fp32 fp64\n"),
                    ContainsRegex("mean/exact/fp32@cpu .*  all\n")));
}

TEST(TheToolsList, HasWhatIsNotSupportedOnRequest) {
  const std::string one = "sum/atomic/kahan/fp32@cpu", reason = "an atomic cell holds one number";
  const Outcome all = shell().run("$T list --all"), refused = shell().run("$T list --unsupported"),
                some = shell().run("$T list 'sum/atomic/kahan/*@cpu' --unsupported");
  EXPECT_THAT(all.out, AllOf(Not(HasSubstr(one)), HasSubstr("`samesum list --unsupported`: " +
                                                            std::to_string(unsupported().size()))));
  EXPECT_EQ(refused.code, 0);
  for (const Unsupported& u : unsupported()) EXPECT_THAT(refused.out, HasSubstr("\n  " + u.name + '\n'));
  for (const std::string& line : lines(refused.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(some.out, AllOf(StartsWith("not supported: " + reason), HasSubstr(one)));
  EXPECT_EQ(lines(some.out).size(), 2u + 4u) << "a reason of two lines, and four formats";
}

TEST(TheToolsList, StatesWhyNothingMatches) {
  for (const Absent& a : absent()) {
    for (const std::string command : {"list ", "compare numbers.txt --methods "})
      EXPECT_THAT(shell().run("$T " + command + "'*@" + a.backend + "'").err,
                  HasSubstr("'*@" + a.backend + "' matches no method: " + a.reason));
    if (a.backend == "cuda") {
      EXPECT_THAT(shell().run("$T compare numbers.txt --methods 'cub/*@peer'").err, HasSubstr(a.reason));
    }
  }
}

TEST(TheToolsList, HasTheMethodsThatAGlobSelects) {
  const auto names = [](const std::string& glob) {
    std::vector<std::string> all;
    const json list = run_json("$T list --json '" + glob + "'");
    for (const json& m : list["methods"]) all.push_back(m["name"]);
    return all;
  };
  EXPECT_THAT(names("dot/exact/fp32@cpu"), ::testing::ElementsAre("dot/exact/fp32@cpu"));
  EXPECT_THAT(names("exact/*@cpu"), ::testing::ElementsAre("sum/exact/fp16@cpu", "sum/exact/bf16@cpu",
                                                           "sum/exact/fp32@cpu", "sum/exact/fp64@cpu"))
      << "without an operation, a name selects sums";
  EXPECT_EQ(names("exact/fp64@cpu"), std::vector<std::string>{"sum/exact/fp64@cpu"})
      << "a name of one method";
  const auto list = [](const std::string& glob) {
    const Outcome o = shell().run("$T list --json '" + glob + "'");
    EXPECT_THAT(o.out, HasSubstr("fp32@cpu")) << glob << o.err;
    return o.out;
  };
  EXPECT_EQ(list("max/*"), list("max/*@*")) << "without a backend, a name selects every backend";
  EXPECT_EQ(list("softmax"), list("softmax/*")) << "not log_softmax";
  EXPECT_EQ(list("kahan"), list("*/kahan/*@*"));
  EXPECT_EQ(list("tree/kahan"), list("*/tree/kahan/*"));
  EXPECT_THAT(shell().run("$T list sum/atomic --unsupported").out, HasSubstr("sum/atomic/kahan/fp32@cpu"));
  const Outcome o = shell().run("$T list 'softmax/*@cpu'");
  EXPECT_THAT(o.out, HasSubstr("softmax/online/fp32@cpu "));
  EXPECT_THAT(o.out, Not(HasSubstr("dot/")));
}

// --- compare -------------------------------------------------------------------------------------

TEST(TheToolsComparison, AsJsonHasEveryMatchingMethodBestFirst) {
  const json o = run_json("$T compare uniform.f32 --methods '*/fp*' --repeat 3 --json");
  EXPECT_EQ(o["data"]["n"], 5000);
  std::size_t matching = 0;
  for (const Method& v : methods("sum"))
    matching += v.backend == "cpu" && !v.is_slow && v.format->name.substr(0, 2) == "fp";
  ASSERT_EQ(o["methods"].size(), matching);
  double last = 0;
  for (const json& m : o["methods"]) {
    EXPECT_TRUE(m["within_bound"]) << m;
    EXPECT_EQ(m["repeats"], 3);
    const double error = m["absolute_error"].is_null() ? std::numeric_limits<double>::infinity()
                                                       : m["absolute_error"].get<double>();
    EXPECT_GE(error, last);
    last = error;
    EXPECT_TRUE(m["promise"] == "none" || m["distinct_bits"] == 1) << m;
    EXPECT_TRUE(m["promise"] != "order_free" || m["bits"] == m["truth_bits"]) << m;
  }
  EXPECT_THAT(o["failures"], IsEmpty());
  EXPECT_THAT(o["recommendation"]["method"].get<std::string>(), HasSubstr("@cpu"));
}

TEST(TheToolsComparison, IncludesPeersOnRequest) {
  const Outcome with = shell().run("$T compare uniform.f32 --methods '*,*@peer' --all");
  EXPECT_EQ(with.code, 0) << with.err;
  for (const char* name : {"exact/fp32 ", "loop/fp32@peer ", "std_reduce/fp32@peer "})
    EXPECT_THAT(with.out, HasSubstr(name));
  EXPECT_EQ(shell().run("$T compare ones.bf16 --methods 'exact,*@peer'").code, 0);  // no peer accepts bf16
  EXPECT_THAT(shell().run("$T compare uniform.f32 --all").out, Not(HasSubstr("@peer")));
}

TEST(TheTool, SumsAndComparesByTheModelOfMatrixUnitsElementsOf16BitsAlone) {
  const json sum = run_json("$T sum ones.bf16 --method hopper/fp32 --json");
  EXPECT_EQ(sum["value"], sum["truth"]);
  EXPECT_TRUE(sum["within_bound"]);
  EXPECT_EQ(run_json("$T compare ones.bf16 --methods hopper/fp32 --repeat 1 --json")["methods"].size(), 1u);
  EXPECT_THAT(shell().run("$T sum uniform.f32 --method hopper/fp32").err,
              HasSubstr("does not accept elements of fp32; convert them to one of fp16, bf16"));
  EXPECT_THAT(shell().run("$T sum ones.bf16 --method hopper/fp32 --save-partial part").err,
              HasSubstr("reduce the whole vector in one call"));
}

/// The names in the table of a comparison.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  bool in_table = false;
  for (const std::string& line : lines(text)) {
    if (in_table && line.empty()) break;
    if (in_table && line[0] != ' ') names.push_back(line.substr(0, line.find(' ')));
    in_table |= line.starts_with("method ");
  }
  return names;
}

TEST(TheToolsComparison, HasTenUsefulRowsAndItsAdviceInSightOnATerminalOf24Lines) {
  const std::string command = "$T compare uniform.f32 --repeat 1";
  const std::string text = shell().run(command).out;
  const std::vector<std::string> names = names_in(text), all = lines(text);
  ASSERT_EQ(names.size(), 10u);
  const auto advice =
      std::ranges::find_if(all, [](const std::string& line) { return line.starts_with("Use "); });
  EXPECT_LT(all.end() - advice, 24) << text;
  EXPECT_THAT(names, ::testing::Contains("serial/plain/fp32"));
  EXPECT_THAT(names, ::testing::Contains(advice->substr(4, advice->find(':') - 4)));
  std::set<Promise> promises, promises_shown;
  std::set<std::string> accumulators, accumulators_shown;
  std::size_t measured = 0;
  for (const Method& m : methods("sum"))
    if ((m.backend == "cpu" || m.backend == "cuda") && !m.is_slow) {
      promises.insert(m.promise), accumulators.insert(m.accumulator), ++measured;
    }
  for (const std::string& name : names) {
    const Method& m = find(name, {.operation = "sum", .format = "fp32"});
    promises_shown.insert(m.promise), accumulators_shown.insert(m.accumulator);
  }
  EXPECT_EQ(promises_shown, promises);
  EXPECT_EQ(accumulators_shown, accumulators);
  EXPECT_EQ(all.back(), std::to_string(measured - 10) + " more methods; --all prints a row for every method");
  const std::string every = shell().run(command + " --all").out;
  EXPECT_EQ(names_in(every).size(), measured);
  EXPECT_THAT(every, Not(HasSubstr("--all")));
  EXPECT_THAT(shell().run(command + " --methods '*/kahan/fp32'").out, Not(HasSubstr("--all")))
      << "at most ten methods are all shown";
  EXPECT_EQ(run_json(command + " --json")["methods"].size(), measured);
}

TEST(TheToolsComparison, AsTextFits80ColumnsAndEndsWithAdvice) {
  for (const char* file : {"uniform.f32", "cancel.txt", "inf.txt", "zeros.txt", "empty.txt", "ones.bf16"}) {
    const Outcome o = shell().run(std::string{"$T compare "} + file + " --repeat 1");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.err, IsEmpty()) << "progress is shown on terminals only";
    for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_THAT(o.out, ContainsRegex("\nUse [a-z0-9_/]+: .+"));
  }
}

TEST(TheToolsComparison, ExplainsItsColumnsAndItsAdvice) {
  const auto compared = [](const std::string& arguments) {
    return shell().run("$T compare " + arguments + " --repeat 1").out;
  };
  const std::string error_of_exact = "the error of an exact method is that of its only rounding",
                    overflow = "(inf: the result is not finite, or an overflow cannot be excluded)\n";
  EXPECT_THAT(
      compared("numbers.txt --methods 'exact,tree/plain/fp64'"),
      AllOf(HasSubstr("bound results time GB/s\n"), HasSubstr("condition number 13"),
            HasSubstr(error_of_exact), HasSubstr("only exact has a bound"), Not(HasSubstr(overflow))));
  EXPECT_THAT(compared("numbers.txt --methods tree/plain/fp64"), Not(HasSubstr(error_of_exact)));
  EXPECT_THAT(compared("inf.txt --methods tree/plain/fp64"),
              AllOf(HasSubstr(overflow), HasSubstr("Use tree/plain/fp64: the data contain inf or NaN")));
  EXPECT_THAT(compared("inf.txt"), HasSubstr("Use exact/fp64: the data contain inf or NaN"));
  for (const char* methods : {"tree/plain/fp64", "*"})
    EXPECT_THAT(compared(std::string{"empty.txt --methods '"} + methods + "'"),
                HasSubstr("there are no elements"));
}

TEST(TheToolsComparison, AsCsvHasAHeaderAndRowsOfTheSameWidth) {
  const Outcome o = shell().run("$T compare inf.txt --methods '*/kahan/*' --csv");
  EXPECT_EQ(o.code, 0);
  const auto rows = lines(o.out);
  ASSERT_EQ(rows.size(), 1u + 6u * 4u);
  EXPECT_THAT(rows[0], StartsWith("method,input_format,n,value,bits,truth,"));
  for (const std::string& row : rows)
    EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(rows[0].begin(), rows[0].end(), ','))
        << row;
}

TEST(TheToolsComparison, CanBeWrittenToAFile) {
  EXPECT_EQ(shell().run("$T compare numbers.txt --methods exact --json --output result.jsonl").out, "");
  EXPECT_EQ(json::parse(read(shell().work() / "result.jsonl"))["methods"].size(), 1u);
  fs::remove(shell().work() / "result.jsonl");
}

TEST(TheToolsComparison, KeepsTheLinkAndThePermissionsOfTheFileThatItReplaces) {
  shell().run("echo old >private && chmod 600 private && ln -s private link");
  EXPECT_EQ(shell().run("$T compare numbers.txt --methods exact --json --output link").code, 0);
  EXPECT_TRUE(fs::is_symlink(shell().work() / "link"));
  EXPECT_EQ(json::parse(read(shell().work() / "private"))["methods"].size(), 1u);
  EXPECT_EQ(fs::status(shell().work() / "private").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  shell().run("rm link private");
}

TEST(TheToolsComparison, CreatesTheTargetOfALinkThatHasNone) {
  shell().run("ln -s target link");
  EXPECT_EQ(shell().run("$T compare numbers.txt --methods exact --json --output link").code, 0);
  EXPECT_TRUE(fs::is_symlink(shell().work() / "link"));
  EXPECT_EQ(json::parse(read(shell().work() / "target"))["methods"].size(), 1u);
  shell().run("rm link target; ln -s circle circle");
  EXPECT_EQ(shell().run("$T compare numbers.txt --methods exact --output circle").code, 2);
  shell().run("rm circle");
}

TEST(TheToolsComparison, OfSeveralResultsSaysWhichItJudges) {
  for (const auto& [operation, result] : {std::pair{"moments", "variance"}, {"softmax", "first element"}}) {
    const std::string command = "$T compare numbers.txt --format fp32 --operation " + std::string{operation};
    const json o = run_json(command + " --json");
    EXPECT_EQ(harness::schema().problem(o, "comparison"), "");
    for (const json& m : o["methods"]) {
      EXPECT_EQ(m["result"], result) << m;
      EXPECT_EQ(m["within_bound"], true) << m;
    }
    EXPECT_THAT(shell().run(command).out,
                AllOf(HasSubstr("exact " + std::string{result}), HasSubstr("\nUse ")));
  }
}

TEST(TheToolsComparison, OfAnyOperationComparesWithItsExactResult) {
  const json truths = {{"sum", 45},
                       {"mean", 4.5},
                       {"sum_of_magnitudes", 45},
                       {"prod", 0},
                       {"norm", std::sqrt(285)},
                       {"squared_norm", 285},
                       {"min", 0},
                       {"logsumexp", 9 + std::log((1 - std::exp(-10)) / (1 - std::exp(-1)))},
                       {"max", 9},
                       {"dot", 285}};
  shell().run("seq 0 9 > digits.txt");
  for (const auto& [operation, truth] : truths.items()) {
    const json o = run_json("$T compare digits.txt " + std::string{operation == "dot" ? "digits.txt " : ""} +
                            "--operation " + operation + " --repeat 1 --json");
    EXPECT_EQ(o["operation"], operation);
    EXPECT_EQ(o["data"]["n"], 10);
    for (const json& m : o["methods"]) {
      const Method& method = find(m["method"].get<std::string>());
      EXPECT_NEAR(m["truth"].get<double>(), truth.get<double>(),
                  2 * method.format->unit_roundoff * truth.get<double>())
          << m;
      EXPECT_TRUE(m["within_bound"].get<bool>()) << m;
    }
  }
  EXPECT_THAT(
      shell().run("$T compare digits.txt digits.txt --operation dot --all").out,
      AllOf(HasSubstr("10 elements of fp64 in each of two vectors\nexact dot product 285, sum of |xy| 285"),
            HasSubstr("tree/plain/fp64")));
}

TEST(TheToolsComparison, DoesNotCallAFiniteSumInfinite) {
  const std::string text = shell().run("echo 1.7e308 1.7e308 | $T compare - --methods exact").out;
  EXPECT_THAT(text, HasSubstr("exact sum beyond the largest fp64"));
}

TEST(TheToolsComparison, ShowsSeveralBitPatternsForArrivalOrderOnly) {
  write(shell().work() / "long.f32",
        testing_support::Array{format_info<fp32>(), testing_support::uniform(std::size_t{1} << 20, 2)}
            .values());
  // On busy processors one thread may do all the work, always in the same order, so there are several
  // attempts.
  std::set<std::string> varying, arrival_order;
  for (int attempt = 0; attempt < 40 && (attempt == 0 || varying != arrival_order); ++attempt) {
    const json o = run_json("$T compare long.f32 --methods '*/plain/fp32' --threads 4 --repeat 60 --json");
    for (const json& m : o["methods"]) {
      if (m["promise"] == "none") arrival_order.insert(m["method"].get<std::string>());
      if (m["distinct_bits"] > 1) varying.insert(m["method"].get<std::string>());
    }
  }
  EXPECT_FALSE(arrival_order.empty());
  EXPECT_EQ(varying, arrival_order);
  fs::remove(shell().work() / "long.f32");
}

// --- report --------------------------------------------------------------------------------------

/// Whether the tool finds a Python with the packages of the report.
bool has_python() {
  static const Outcome found = shell().run("cd '" SAMESUM_SOURCE_DIR
                                           "' && for p in build/venv/bin/python python3; do "
                                           "$p -c 'import jsonschema, plotly' && exit 0; done; exit 1");
  return found.code == 0;
}

TEST(TheToolsReport, CanBeMadeOfResultsFilesAlone) {
  if (!has_python()) GTEST_SKIP() << "no Python with jsonschema and plotly";
  const Outcome o = shell().run(
      "mkdir -p study && $T compare uniform.f32 --methods '*/fp32' --json >study/results.jsonl && "
      "$T report study --alone");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("How large are the errors? uniform.f32 ("));
  EXPECT_THAT(read(shell().work() / "study/report.html"), HasSubstr("uniform.f32"));
  const std::string text = read(shell().work() / "study/report.md");
  EXPECT_THAT(text, HasSubstr("uniform.f32"));
  // Its reader runs the command that it names on other data.
  const std::size_t begin = text.find("on your own data: `samesum ") + 19, end = text.find('`', begin);
  std::string command = text.substr(begin, end - begin);
  command.replace(command.find("FILE"), 4, "../numbers.txt --methods exact");
  EXPECT_EQ(shell().run("cd study && rm * && samesum() { $T \"$@\"; } && " + command).code, 0) << command;
  EXPECT_THAT(read(shell().work() / "study/report.md"), HasSubstr("numbers.txt"));
  fs::remove_all(shell().work() / "study");
}

TEST(TheToolsReport, CanBeMadeOfOtherMachinesAloneInANewFolder) {
  if (!has_python()) GTEST_SKIP() << "no Python with jsonschema and plotly";
  const std::string there =
      "mkdir -p there && $T compare uniform.f32 --methods exact --json >there/x.compare.jsonl && ";
  const Outcome o = shell().run(there + "$T report --committed there --out new/folder");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(fs::exists(shell().work() / "new/folder/report.html"));
  const Outcome wrong = shell().run("$T report there");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.err,
            "samesum report: there: these are results of other machines (x.compare.jsonl); pass the "
            "folder as --committed\n");
  for (const char* folder : {"there", "new"}) fs::remove_all(shell().work() / folder);
}

TEST(TheToolsReport, RefusesResultsOfAnotherSchema) {
  if (!has_python()) GTEST_SKIP() << "no Python with jsonschema and plotly";
  const Outcome o = shell().run(
      "mkdir -p old && echo '{\"kind\":\"study\",\"schema\":1}' >old/error_vs_length.jsonl && $T report old");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("old/error_vs_length.jsonl: is of schema 1, and this report reads schema 2"));
  EXPECT_EQ(lines(o.err).size(), 1u) << o.err;
  EXPECT_FALSE(fs::exists(shell().work() / "old/report.html"));
  fs::remove_all(shell().work() / "old");
}

// --- errors --------------------------------------------------------------------------------------

struct Bad {
  std::string command, message;
};
std::ostream& operator<<(std::ostream& out, const Bad& b) { return out << b.command; }

class TheToolRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(TheToolRefuses, WrongUsageWithAMessageOfOneLine) {
  const Outcome o = shell().run(GetParam().command);
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.out, IsEmpty());
  EXPECT_EQ(lines(o.err).size(), 1u) << o.err;
  EXPECT_THAT(o.err, StartsWith("samesum: "));
  EXPECT_THAT(o.err, HasSubstr(GetParam().message));
}

const std::string saved_sum = "$T sum numbers.txt --save-partial saved.partial >o; $T sum numbers.txt ";

INSTANTIATE_TEST_SUITE_P(
    Arguments, TheToolRefuses,
    ::testing::Values(
        Bad{"$T", "subcommand is required"}, Bad{"$T frobnicate", "unknown command 'frobnicate'"},
        Bad{"$T dot", "file is required"}, Bad{"$T sum <&-", "standard input: cannot be read: Bad file"},
        Bad{"$T sum numbers.txt --frobnicate", "--frobnicate"},
        Bad{"$T sum numbers.txt absent.txt", "absent.txt"}, Bad{"$T sum missing.txt", "missing.txt"},
        Bad{"$T sum .", "."}, Bad{"$T sum bad.txt", "bad.txt"}, Bad{"$T sum odd.f32", "odd.f32"},
        Bad{"$T sum numbers.txt --format fp8", "'fp8'"},
        Bad{"$T sum prices.csv", "prices.csv: has 2 columns: 'day', 'price'; choose one with --column NAME"},
        Bad{"$T compare prices.csv", "choose one with --column"},
        Bad{"$T choose prices.csv --ulps 1", "choose one with --column"},
        Bad{"$T choose --length 9 --ulps 1 --header", "--header"},
        Bad{"$T sum prices.csv --column ''", "--column: is empty; give a value"},
        Bad{"printf '1.5\\n1.#INF' | $T sum",
            "standard input: line 2, column 1: '1.#INF' is not a number; write"},
        Bad{"printf 'k,v\\na,-1.#IND' | $T scatter_add --by k --column v",
            "line 2, column 3: '-1.#IND' is not a number; write nan or inf instead"},
        Bad{"printf 'x\\n1\\n#N/A\\n' | $T mean --column x",
            "line 3, column 1: '#N/A' is not a number; write"},
        Bad{"printf '1\\n#DIV/0!' | $T compare", "line 2, column 1: '#DIV/0!' is not a number"},
        Bad{"printf '1\\n#NUM!' | $T choose - --ulps 1", "line 2, column 1: '#NUM!' is not a number"},
        Bad{"cat two.npz | $T sum -", "standard input: has 2 members: 'a', 'b'"},
        Bad{"$T mean prices.tsv --column day", "prices.tsv: line 2, column 1: 'Mon' is not a number"},
        Bad{"$T sum two.npz", "two.npz: has 2 members: 'a', 'b'; choose one as in FILE.npz:MEMBER"},
        Bad{"$T sum two.npz:c", "two.npz: no member 'c'"},
        Bad{"$T sum two.npz:", "two.npz:: no name of a member"},
        Bad{"$T scatter_add sales.csv", "--by is required"},
        Bad{"$T scatter_add sales.csv --by ''", "--by: is empty; give a value"},
        Bad{"$T scatter_add sales.csv --by town --column price",
            "sales.csv: no column 'town'; it has 3 columns: 'city', 'note', 'price'"},
        Bad{"$T scatter_add sales.csv --by city --column cost",
            "sales.csv: no column 'cost'; it has 3 columns: 'city', 'note', 'price'"},
        Bad{"$T scatter_add sales.csv --by city", "choose one with --column NAME"},
        Bad{"$T scatter_count sales.csv --by 4",
            "sales.csv: no column '4'; it has 3 columns, counted from 1"},
        Bad{"$T scatter_add sales.csv --by price --column city",
            "sales.csv: line 2, column 1: 'Oslo' is not a number"},
        Bad{"$T scatter_add empty.txt --by city --column price", "empty.txt: has no record, and no column"},
        Bad{"$T scatter_add wide.npy --by 1",
            "wide.npy: --by is for tables (.txt .csv .tsv .parquet .arrow .feather, -)"},
        Bad{"$T scatter_add sales.csv --by city --column price --method tree/plain", "use serial"},
        Bad{"$T scatter_add sales.csv --by city --column price --grid 0", "--grid is only for"},
        Bad{"$T scatter_max sales.csv --by city --column price --grid 0", "--grid"},
        Bad{"$T sum prices.csv --column price --where price", "--where: 'price' is not a condition; write"},
        Bad{"$T sum prices.csv --column price --where 'cost > 1'", "no column 'cost'"},
        Bad{"$T sum prices.csv --column price --weights cost", "no column 'cost'"},
        Bad{"$T sum prices.csv --column price --weights day",
            "'Mon' in the column of --weights is not a number"},
        Bad{"$T mean prices.csv --column price --weights price --method exact",
            "--method: not with --weights"},
        Bad{"printf 'x,w\\n1,1\\n1,-1\\n' | $T mean --column x --weights w", "the weights sum to zero"},
        Bad{"$T sum one.npz --where '1 > 0'", "one.npz: --where is for tables"},
        Bad{"$T sum one.npz --column 1", "one.npz: --column and --header are for tables"},
        Bad{"head -c 99 one.npz >cut.npz; $T sum cut.npz", "cut.npz: not a .npz file"},
        Bad{"head -c 90 wide.npy | $T sum -", "standard input: cut short"},
        Bad{"$T compare two.npz:a --output two.npz", "--output: this file holds the elements"},
        Bad{"$T sum wide.npy --save-partial saved.partial", "wide.npy: has integers beyond 2^53"},
        Bad{"$T sum numbers.txt --format fp8", "fp16, bf16, fp32, fp64"},
        Bad{"$T sum numbers.txt --threads -1", "--threads: -1 is negative"},
        Bad{"$T sum numbers.txt --threads many", "many"},
        Bad{"$T sum numbers.txt --threads 99999999999", "--threads"},
        Bad{"$T rolling_sum numbers.txt --window 0", "samesum: --window: '0' is not 1 or more (see"},
        Bad{"$T rolling_sum numbers.txt --window 1.5",
            "--window: '1.5' is not a whole number of at most 18 digits"},
        Bad{"$T rolling_sum numbers.txt --window 2 --min-periods -1", "--min-periods: '-1' is not a whole"},
        Bad{"$T sum numbers.txt --threads", "--threads"}, Bad{"$T sum numbers.txt --hex --json", "--json"},
        Bad{"$T sum numbers.txt --method tree/kahn/fp32", "did you mean 'kahan'?"},
        Bad{"$T sum missing.txt --method tree/kahn/fp32", "tree/kahn/fp32"},
        Bad{"$T sum numbers.txt --method ''", "no method ''"},
        Bad{"$T sum numbers.txt --method variance",
            "'variance' is called 'moments' here; `samesum list 'sum/*'` lists"},
        Bad{"$T sum missing.txt --method mean",
            "--method: 'mean' is not a sum; `samesum list 'sum/*'` lists"},
        Bad{"$T mean numbers.txt --method mean",
            "samesum: --method: no method 'mean': the name leaves the order"},
        Bad{"$T compare numbers.txt --operation norm --methods exact",
            "samesum: --methods: no method 'norm/exact/fp64@cpu'"},
        Bad{"$T moments numbers.txt --ddof -1", "samesum: --ddof is -1; it must be 0 or more"},
        Bad{"$T choose overflow.txt --ulps 1",
            "overflow.txt: the sum of its magnitudes is beyond the largest fp64; use exact"},
        Bad{"$T choose --length 9 --ulps 1 --operation norm --condition 10",
            "--condition: bounds of norm do not depend on it; leave it out"},
        Bad{"$T choose --length 9 --ulps 1 --operation median",
            "--operation: 'median' is not an operation; choose one of sum, mean"},
        Bad{"$T compare numbers.txt --operation argmax",
            "--operation: 'argmax' is not an operation with an exact result to compare with; choose one of"},
        Bad{"$T argmax numbers.txt --bound", "(see samesum argmax --help)"},
        Bad{"$T softmax numbers.txt --format fp32 --axis columns --output y.npy", "--axis: FILE has 1 axis"},
        Bad{"$T completion fish", "SHELL: 'fish' is not supported; choose one of bash, zsh"},
        Bad{"$T sum numbers.txt --method sum", "leaves the order and the accumulator open; use one of"},
        Bad{"$T max numbers.txt --method max/tree", "the nearest are max/fp64@cpu"},
        Bad{"$T max uniform.f32 --method max/tree --format bf16", "the nearest are max/bf16@cpu"},
        Bad{"$T sum numbers.txt --resume missing.partial",
            "missing.partial: cannot be read; leave out --resume to start at the first element"},
        Bad{saved_sum + "--method tree/plain/fp64 --resume saved.partial",
            "saved.partial: holds a partial of sum/exact/fp64@cpu, not of sum/tree/plain/fp64@cpu; pass "
            "--method sum/exact/fp64@cpu, or leave out --resume"},
        Bad{saved_sum + "--format fp16 --resume saved.partial", "not of sum/exact/fp16@cpu"},
        Bad{"$T sum numbers.txt --save-partial saved.partial >o; $T sum uniform.f32 --resume saved.partial",
            "not of sum/exact/fp32@cpu"},
        Bad{"$T sum numbers.txt --save-partial saved.partial >o; $T sum empty.txt --resume saved.partial",
            "saved.partial: covers 3 elements, but FILE has only 0; resume with the file"},
        Bad{"$T sum uniform.f32 --save-partial saved.partial >o; $T sum two.f32 --resume saved.partial",
            "saved.partial: covers 5000 elements, but FILE has only 2"},
        Bad{saved_sum + "--resume numbers.txt",
            "numbers.txt: not a serialised state: it does not begin with"},
        Bad{"$T sum numbers.txt --save-partial saved.partial >o; head -c 50 saved.partial >cut.partial; "
            "$T sum numbers.txt --resume cut.partial",
            "cut.partial: not a serialised state: it is damaged: its checksum does not match; leave out "
            "--resume"},
        Bad{"$T sum numbers.txt --resume .", ".: not a serialised state: it ends after 0 bytes"},
        Bad{"$T sum numbers.txt --resume later.partial",
            "later.partial: begins at element 5; leave out --resume to start at the first element"},
        Bad{"$T sum numbers.txt --resume saved.partial --json", "--json"},
        Bad{"$T sum numbers.txt --save-partial ./numbers.txt",
            "--save-partial: this file holds the elements"},
        Bad{"$T sum numbers.txt --save-partial missing/saved", "missing/saved: cannot be written"},
        Bad{"$T sum numbers.txt --save-partial -", "--save-partial: '-' is not a file"},
        Bad{"$T sum numbers.txt --method atomic/plain/fp64 --save-partial saved.partial",
            "its bits differ from run to run; use a method that promises everywhere"},
        Bad{"$T compare uniform.f32 --methods tree/exact", "/fp32@cpu"},
        Bad{"$T compare numbers.txt --methods 'dot/*'", "'dot/*' matches no sum; pass --operation dot"},
        Bad{"$T compare numbers.txt --operation dot", "dot takes exactly two files, and 1 was given"},
        Bad{"$T compare numbers.txt --operation cumsum",
            "--operation: 'cumsum' is not an operation with an exact result to compare with"},
        Bad{"$T compare numbers.txt --operation mean --methods max/fp64", "'max/fp64' is not a mean"},
        Bad{"$T compare numbers.txt --methods 'atomic/kahan/*'",
            "matches no method: an atomic cell holds one"},
        Bad{"$T sum numbers.txt --method exact/fp8", "exact/fp8"},
        Bad{"$T sum numbers.txt --method exact@tpu", "'tpu' is unknown or out of place"},
        Bad{"$T sum numbers.txt --method atomic/kahan/fp32", "an atomic cell holds one number"},
        Bad{"$T compare numbers.txt --threads -7", "--threads: -7 is negative"},
        Bad{"$T compare numbers.txt --repeat 0", "--repeat: 0"},
        Bad{"$T compare numbers.txt --repeat -3", "--repeat: -3"},
        Bad{"$T compare numbers.txt --repeat 1.5", "1.5"},
        Bad{"$T compare numbers.txt --csv --json", "--csv"},
        Bad{"$T compare numbers.txt --methods 'x*'", "'x*' matches no method"},
        Bad{"$T compare missing.txt --methods 'x*'", "'x*' matches no method"},
        Bad{"$T compare numbers.txt --methods ''", "'' matches no method"},
        Bad{"$T compare numbers.txt --methods tree", "try 'tree/*'"},
        Bad{"$T compare numbers.txt --methods tree/khan/fp32", "did you mean 'kahan'?"},
        Bad{"$T compare numbers.txt --methods atomic/kahan/fp32", "an atomic cell holds one number"},
        Bad{"$T compare ones.bf16 --methods loop/fp32@peer", "takes bf16"},
        Bad{"$T sum ''", "FILE: the name is empty"},
        Bad{"$T sum numbers.txt --method \"$(printf 'a\\033[31mb')\"", "a\\x1b[31mb"},
        Bad{"$T compare missing.txt", "missing.txt"},
        Bad{"$T compare numbers.txt --output missing/out", "missing/out: cannot be written"},
        Bad{"$T compare numbers.txt --output -", "--output: '-' is not a file"},
        Bad{"$T compare numbers.txt --output numbers.txt", "--output: this file holds the elements"},
        Bad{"$T compare numbers.txt --output .", ".: cannot be written: Is a directory"},
        Bad{"SAMESUM_SOURCE=/nowhere $T report .", "set SAMESUM_SOURCE to the source folder of samesum"},
        Bad{"PATH=/nowhere SAMESUM_SOURCE=tree $T report .", "install Python 3 with the packages jsonschema"},
        Bad{"PATH=none:$PATH SAMESUM_SOURCE=tree $T report .",
            "packages that /my/python3 lacks; install them with /my/python3 -m pip install plotly"},
        Bad{"$T report", "DIR or --committed is missing"},
        Bad{"$T report . --alone --committed .", "--alone"},
        Bad{"$T report nowhere", "nowhere: not a folder"},
        Bad{"$T report numbers.txt", "numbers.txt: not a folder"},
        Bad{"$T sum numbers.txt >/dev/full", "standard output: cannot be written: No space left"},
        Bad{"$T list >/dev/full", "standard output"}, Bad{"$T list 'x*'", "'x*' matches no method"},
        Bad{"$T list khan",
            "'khan' matches no method: 'khan' is unknown or out of place; did you mean 'kahan'?"},
        Bad{"$T list 'y/*'", "matches no method; `samesum list` shows operations, orders and accumulators"},
        Bad{"$T list sum/atomic/kahan/fp32", "matches no method: an atomic cell holds one number"},
        Bad{"$T list moments/pairwise/fp32", "would merge two states per addition"},
        Bad{"$T list 'x*' --unsupported", "'x*' matches no unsupported combination"},
        Bad{"$T list --json --unsupported", "--unsupported"},
        Bad{"$T sum numbers.txt --method max/fp64", "--method: 'max/fp64' is not a sum"},
        Bad{"$T compare numbers.txt --methods dot/exact", "--methods: 'dot/exact' is not a sum"},
        Bad{"$T choose", "--length or a file is missing"},
        Bad{"$T choose --length 0 --ulps 1", "--length: 0 elements; give 1 or more"},
        Bad{"$T choose --length -5 --ulps 1", "--length: '-5' is not a whole number"},
        Bad{"$T choose --length 1e6 --ulps 1", "--length"},
        Bad{"$T choose --length 9", "--relative-error or --ulps is missing"},
        Bad{"$T choose --length 9 --ulps 1 --relative-error 1",
            "--relative-error and --ulps: give only one of them"},
        Bad{"$T choose --length 9 --relative-error -1",
            "samesum: --relative-error is -1; it must be 0 or more"},
        Bad{"$T choose --length 9 --ulps 1 --condition 0", "samesum: --condition is 0; it must be finite"},
        Bad{"$T choose --length 1 --ulps 1 --magnitudes 1e-300 --condition 1e300", "the sum might be 0"},
        Bad{"$T choose --length 10 --ulps 1 --input bf16 --magnitudes 1e40",
            "10 elements of bf16 have at most"},
        Bad{"$T choose --length 9 --ulps nan", "samesum: --ulps is nan"},
        Bad{"$T choose --length 9 --ulps 1 --input fp8", "must be one of fp16, bf16, fp32, fp64"},
        Bad{"$T choose --length 9 --ulps 1 --promise ever", "choose one of none, run_to_run, everywhere"},
        Bad{"$T choose --length 9 --ulps 1 --backend tpu", "must be one of reference, cpu, cuda"},
        Bad{"$T choose --length 9 --ulps 1 --costs missing.jsonl", "missing.jsonl"},
        Bad{"$T choose --length 9 --ulps 1 --costs numbers.txt", "samesum calibrate --out"},
        Bad{"$T choose --length 9 --relative-error 1e-30", "; the smallest is 1.11e-16, of sum/exact/fp64@"},
        Bad{"$T choose numbers.txt --length 9 --ulps 1", "--length"},
        Bad{"$T choose missing.txt --ulps 1", "missing.txt"},
        Bad{"$T choose inf.txt --ulps 1", "inf.txt: its sum is 0 or not finite"},
        Bad{"$T calibrate --out missing/out", "missing/out: cannot be written"},
        Bad{"$T calibrate --out .", ".: cannot be written: Is a directory"},
        Bad{"HOME= XDG_CACHE_HOME= $T calibrate", "--out: neither XDG_CACHE_HOME nor HOME"},
        Bad{"$T calibrate somewhere", "somewhere"},
        Bad{"$T compare numbers.txt --methods exact >&-", "standard output"}));

TEST(TheTool, LeavesNoFileBehindIfItCannotWrite) {
  const auto count = [] {
    return std::distance(fs::directory_iterator{shell().work()}, fs::directory_iterator{});
  };
  const auto before = count();
  shell().run("$T compare numbers.txt --methods exact --output missing/out");
  shell().run("$T compare bad.txt --methods exact --output out");
  shell().run("(ulimit -f 0; $T compare numbers.txt --methods exact --output out)");
  EXPECT_EQ(count(), before);
}

TEST(TheTool, SucceedsIfItsOutputPipeIsClosed) {
  const Outcome o = shell().run("{ $T list --json; echo \"code $?\" >&2; } | true");
  EXPECT_EQ(o.err, "code 0\n");
}

TEST(TheTool, HasHelpTextsWithExamples) {
  std::set<std::string> commands{"", "list ", "compare ", "report ", "choose ", "calibrate ", "completion "};
  for (const Method& m : methods()) commands.insert(m.operation + ' ');
  for (const std::string& command : commands) {
    const Outcome o = shell().run("$T " + command + "--help");
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.err, IsEmpty());
    EXPECT_THAT(o.out, HasSubstr("Examples:\n  "));
    for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(TheTool, ReducesAColumnByTheKeysInAnother) {
  const auto by_city = [](const std::string& operation, const std::string& options = " --column price") {
    const Outcome o = shell().run("$T scatter_" + operation + " sales.csv --by city" + options);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  const std::string york = "New\\x09York, NY\t";
  EXPECT_EQ(by_city("add"), "Oslo\t1\n" + york + "2.5\nÅre\t-4\n");
  EXPECT_EQ(by_city("add", " --column 3"), by_city("add"));
  EXPECT_EQ(by_city("add", " --column price --method serial/plain"), "Oslo\t0\n" + york + "2.5\nÅre\t-4\n");
  EXPECT_EQ(by_city("mean"), "Oslo\t0.3333333333333333\n" + york + "2.5\nÅre\t-4\n");
  EXPECT_EQ(by_city("min"), "Oslo\t-1e+16\n" + york + "2.5\nÅre\t-4\n");
  EXPECT_EQ(by_city("max"), "Oslo\t1e+16\n" + york + "2.5\nÅre\t-4\n");
  EXPECT_EQ(by_city("count", ""), "Oslo\t3\n" + york + "1\nÅre\t1\n");
  EXPECT_EQ(by_city("add", " --column price --method fixed_point --grid 1"),
            "Oslo\t0\n" + york + "2\nÅre\t-4\n");
  EXPECT_EQ(by_city("add", " --column price --format fp32 --hex"),
            "Oslo\t0x1p+0\n" + york + "0x1.4p+1\nÅre\t-0x1p+2\n");
}

TEST(TheTool, ReducesByKeyATableOfSeveralPortions) {
  EXPECT_EQ(shell().run("yes 'a,1\nb,2' | head -600000 | $T scatter_add - --by 1 --column 2").out,
            "a\t300000\nb\t600000\n");
  EXPECT_EQ(shell().run("$T scatter_count sales.csv prices.csv --by 1 --header").out.substr(0, 7),
            "Oslo\t3\n");
}

TEST(TheTool, ReducesByKeyWithBoundsThatHold) {
  std::string table;
  for (int i = 0; i < 1000; ++i)
    table += std::to_string(i * i % 7) + ',' + std::to_string(1.0 / (i + 3)) + '\n';
  testing_support::write(shell().work() / "many.csv", table);
  const std::string call = "$T scatter_add many.csv --by 1 --column 2 --json --method ";
  const json exact = run_json(call + "exact");
  EXPECT_EQ(exact["keys"], (json{"0", "1", "4", "2"}));
  EXPECT_EQ(exact["n"], 1000);
  EXPECT_EQ(exact["promise"], "order_free");
  for (const std::string method : {"serial/plain", "fixed_point", "fixed_point --grid -12"}) {
    const json rounded = run_json(call + method);
    ASSERT_EQ(rounded["keys"], exact["keys"]) << method;
    for (std::size_t k = 0; k < 4; ++k) {
      const double error = rounded["values"][k].get<double>() - exact["values"][k].get<double>();
      const double bound = rounded["bounds"][k].get<double>();
      EXPECT_LE(std::abs(error), bound + exact["bounds"][k].get<double>()) << method;
      EXPECT_LE(bound, 0.1) << method;
    }
  }
  const json counts = run_json("cat many.csv | $T scatter_count - --by 1 --json");
  EXPECT_EQ(counts["values"], (json{143, 285, 286, 286}));
  EXPECT_FALSE(counts.contains("bounds"));
}

TEST(TheTool, PrintsItsVersion) {
  EXPECT_THAT(shell().run("$T --version").out,
              ContainsRegex("^samesum [0-9]+\\.[0-9]+\\.[0-9]+\ncommit [0-9a-z-]+\n"
                            "cpu with the instruction set [a-z0-9]+\n(cuda|no cuda: .*)\n$"));
}

}  // namespace
}  // namespace samesum
