"""The three verdicts that a run prints, and with which the notebooks start."""

FIRST = ["own-data", "error", "spread", "speed"]  # sections whose verdicts come first


def headlines(sections):
    """Up to three pairs (question, verdict) of the sections that have a verdict."""
    order = sorted(sections, key=lambda s: FIRST.index(s.id) if s.id in FIRST else len(FIRST))
    return [(s.question, s.verdict) for s in order if s.verdict][:3]
