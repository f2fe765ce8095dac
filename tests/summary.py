"""Counts the tests of a build, and prints the output of those that failed.

Usage: summary.py tests.xml
Reads the file that `ctest --output-junit` writes. Prints the output of failed tests, the names of skipped tests,
remarks on what this machine lacks, and last "PASSED FAILED SKIPPED". A program that crashes counts as one failure,
no matter how many tests it had left.
"""
import re
import sys
import xml.etree.ElementTree as xml

RESULT = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (.*) \(\d+ ms\)$", re.M)
NOISE = re.compile(r"^\[ *(RUN|OK|SKIPPED|-+|=+|PASSED) *\]|^$|^Note: |^Running main")
REMARK = re.compile(r"^(?:CUDA|notebooks|browser): .*$", re.M)


def main():
    passed, failed, skipped, remarks = 0, 0, [], set()
    for test in xml.parse(sys.argv[1]).getroot().iter("testcase"):
        name, output = test.get("name"), test.findtext("system-out") or ""
        results = RESULT.findall(output)  # if the test is a GoogleTest program
        remarks.update(REMARK.findall(output))
        passed += sum(kind == "OK" for kind, _ in results)
        skipped += [one for kind, one in results if kind == "SKIPPED"]
        failures = sum(kind == "FAILED" for kind, _ in results)
        failed += failures
        why = test.find("skipped")
        if why is not None and why.get("message").startswith("SKIP_RETURN_CODE"):
            skipped.append(name)
        elif test.get("status") != "run" or failures:
            failed += not failures
            print(f"   FAILED: {name}", *(line for line in output.splitlines() if not NOISE.match(line)), sep="\n")
        elif not results:
            passed += 1
    for test in skipped:
        print(f"   skipped: {test}")
    print(*(f"   {remark}" for remark in sorted(remarks)), sep="\n", end="\n" if remarks else "")
    print(passed, failed, len(skipped))


main()
