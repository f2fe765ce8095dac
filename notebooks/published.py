"""What others measured or proved: figures of published studies, each with its source. pages.py shows them beside the
committed results on the same question."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Published:
    found: str  # what the authors report; {} stands for what is computed from their figures
    source: str
    url: str

    def cited(self, *figures):
        return f"{self.found.format(*figures)} ([{self.source}]({self.url}))"


SHANMUGAVELU = "https://github.com/minnervva/correctness/blob/e7bec49c3a7f1bd288b8030110e8b7cfab6ca1d4"
NLA_GROUP = "https://nla-group.org/2020/01/22/sharper-probabilistic-backward-error-bounds/"

# fp64 sums with one atomic addition per block of 64 threads, beside a deterministic sum, on up to 10^6 numbers.
SPREAD_GROWTH = Published("√n for uniform numbers, a higher power for normal ones; an atomic addition per block, V100",
                          "Shanmugavelu et al. 2024", f"{SHANMUGAVELU}/README.md")
# The deterministic result and 1,000 others: the row with 10000 and 0.5 and sum. Half of the numbers are scattered.
SCATTER = Published("1,001 in 1,001 calls of torch.scatter_reduce, 5,000 fp32 into 5,000 places",
                    "Shanmugavelu et al. 2024",
                    f"{SHANMUGAVELU}/codes/test-suite/paper-results/data/scatter_reduce_updated.csv")
# Means of 1,000 fp32 results against a deterministic one: of Vermv, the mean over the elements of |a - b| / |a|, and of
# Vc, the share of elements that differ. The row with 10000 and 0.5 and sum, and that with (1000, 1000) and 0.5.
# Its rows on cumsum show only that vectors of 10,000 and of 1,000,000 numbers had two results in two calls.
VARIABILITY = [
    Published("against a deterministic result: scatter_reduce 6.9e-10 and 0.0051, 5,000 fp32 into 5,000 places",
              "Shanmugavelu et al. 2024", SCATTER.url),
    Published("index_add 5.2e-10 and 0.0021, 500 rows of 1,000 fp32 into 500 places", "the same",
              SCATTER.url.replace("scatter_reduce", "index_add")),
    Published("cumsum varies, too", "the same", f"{SHANMUGAVELU}/codes/test-suite/operations_analysis.ipynb")]
# The bound with √n is almost sharp for numbers in [0, 1]; for those in [-1, 1] the error seems not to grow.
ROUNDING_GROWTH = Published("√n for numbers in [0, 1], no growth for numbers in [-1, 1]; fp32",
                            "Higham and Mary 2019 and 2020", NLA_GROUP)
# Medians on 10^6 doubles with magnitudes over about 12 decades, x86-64, the loop first.
EXACT_SUMS = Published("{}; numbers over 12 decades", "bitrep 0.5.1",
                       "https://github.com/KyleClouthier/bitrep/blob/632a36bc724ef9d371fe94d0e1daddcd507b613b/README.md")
EXACT_SUMS_SECONDS = {"a simple loop": 409e-6, "Kahan": 1.65e-3, "xsum": 1.36e-3, "bitrep": 4.20e-3}
# Report UCB/EECS-2015-229: its dot product against that of MKL.
REPRODUCIBLE_DOT = Published("4 times as long with ReproBLAS as with MKL; 4,096 numbers",
                             "Ahrens, Nguyen and Demmel 2015", "https://aspire.eecs.berkeley.edu/publication/"
                             "efficient-reproducible-floating-point-summation-and-blas-2/")
# Conjugate gradient squared with Jacobi's preconditioner, matrix offshore, OpenMP on an AMD Milan.
SOLVER = Published("895 to 997 with conjugate gradients squared, threads of a CPU", "ginkgo, issue 1293",
                   "https://github.com/ginkgo-project/ginkgo/issues/1293")
# The least and the largest slowdown of reproducible sums of groups in operators of their own: Müller, Arteaga, Hoefler
# and Alonso, Reproducible Floating-Point Aggregation in RDBMSs, ICDE 2018, arXiv 1802.09883, abstract.
SLOWDOWN_OF_GROUPS = {"with a new type of number": (4, 12), "with operators made for it": (1.9, 2.4)}
