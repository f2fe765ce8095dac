"""Counts the tests of a build, and prints the output of those that failed.

Usage: summary.py tests.xml
Reads the file that `ctest --output-junit` or `pytest --junit-xml` writes. Prints the output of failed tests, the names
of skipped tests and why (a line for those of a suite or file that have the same reason), remarks on what this machine
lacks, and last "PASSED FAILED SKIPPED". A program that crashes counts as one failure, no matter how many tests it had
left.
"""
import ast
import collections
import re
import sys
import xml.etree.ElementTree as xml

SUITE = re.compile(r"(?:[A-Z]\w*/)?([A-Za-z_]\w*)(?:/\d+)?\.")  # of Prefix/Suite.Test/parameter or Suite/type.Test
WHY = re.compile(r": Skipped\n(.+)\n+\[ *SKIPPED *\] (.*) \(\d+ ms\)$", re.M)
RESULT = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (.*) \(\d+ ms\)$", re.M)
NOISE = re.compile(r"^\[ *(RUN|OK|SKIPPED|-+|=+|PASSED) *\]|^$|^Note: |^Running main")
REMARK = re.compile(r"^(?:CUDA|MPI|Python|DuckDB|PostgreSQL|SQLite|network|notebooks|browser): .*$", re.M)


def print_skipped(skipped):
    """Prints a Counter of pairs of names and reasons."""
    for (name, reason), count in skipped.items():
        print(f"   skipped: {name}{f' ({count} tests)' * (count > 1)}{': ' * bool(reason)}{reason}")


def count_pytest(tests):
    passed, failed, skipped = 0, 0, collections.Counter()
    for test in tests:
        name = ".".join(filter(None, (test.get("classname"), test.get("name"))))
        why = test.find("skipped")
        wrong = test.findall("failure") + test.findall("error")
        for problem in wrong:
            print(f"   FAILED: {name}", problem.text or problem.get("message"), sep="\n")
        if why is not None:
            reason = why.get("message")
            if reason == "collection skipped":  # the whole file; the text is a tuple of path, line and reason
                reason = ast.literal_eval(why.text)[2].removeprefix("Skipped: ")
            skipped[test.get("classname") or test.get("name"), reason] += 1
        passed += why is None and not wrong
        failed += bool(wrong)
    print_skipped(skipped)
    print(passed, failed, sum(skipped.values()))


def main():
    root = xml.parse(sys.argv[1]).getroot()
    if root.tag == "testsuites":
        count_pytest(root.iter("testcase"))
    else:
        count_ctest(root.iter("testcase"))


def count_ctest(tests):
    passed, failed, skipped, remarks = 0, 0, collections.Counter(), set()
    for test in tests:
        name, output = test.get("name"), test.findtext("system-out") or ""
        results = RESULT.findall(output)  # if the test is a GoogleTest program
        remarks.update(REMARK.findall(output))
        passed += sum(kind == "OK" for kind, _ in results)
        reasons = {one: reason for reason, one in WHY.findall(output)}
        skipped.update((SUITE.search(one)[1], reasons.get(one, "")) for kind, one in results if kind == "SKIPPED")
        failures = sum(kind == "FAILED" for kind, _ in results)
        failed += failures
        why = test.find("skipped")
        if why is not None and why.get("message").startswith("SKIP_RETURN_CODE"):
            skipped[name, ""] += 1
        elif test.get("status") != "run" or failures:
            failed += not failures
            print(f"   FAILED: {name}", *(line for line in output.splitlines() if not NOISE.match(line)), sep="\n")
        elif not results:
            passed += 1
    print_skipped(skipped)
    print(*(f"   {remark}" for remark in sorted(remarks)), sep="\n", end="\n" if remarks else "")
    print(passed, failed, sum(skipped.values()))


main()
