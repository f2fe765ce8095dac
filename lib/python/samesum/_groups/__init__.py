"""`samesum.groupby`: columns as keys and values, the rows of each group, and what the methods of groups return.

`samesum` exports `groupby`; nothing else calls it.
"""
