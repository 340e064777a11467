// Run with `node test.js` or `bun test.js`; fails with exit code 1.
import { mean, median } from "./stats.js";

function check(what, got, want) {
  const good = got === want;
  console.log(`${good ? "ok  " : "FAIL"} ${what}: ${got}${good ? "" : `, expected ${want}`}`);
  if (!good) process.exitCode = 1;
}

check("mean", mean([1, 2, 6]), 3);
check("median of an odd count", median([3, 1, 2]), 2);
check("median of an even count", median([4, 1, 3, 2]), 2.5);
check("median of larger numbers", median([9, 10, 100]), 10);
