import json
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, "benchmarks")
import prices_accuracy as b

seeds, out = range(int(sys.argv[1]), int(sys.argv[2])), sys.argv[3]
models = sys.argv[4].split(",")
b.MODELS = {k: v for k, v in b.MODELS.items() if k in models}
sizes = [int(x) for x in sys.argv[5].split(",")]
for seed in seeds:
    for size in sizes:
        for t in b.TRUTHS:
            row = b.measure(t, size, seed)
            open(out, "a").write(json.dumps(row) + "\n")
