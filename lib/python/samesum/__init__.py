from ._functions import sum
