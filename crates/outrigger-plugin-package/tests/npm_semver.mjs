// Records what npm's own `semver` says of a table of ranges: `npm install semver`, then `bun npm_semver.mjs > npm_semver.json` here.
import { createRequire } from "node:module"

const require = createRequire(import.meta.url)
const semver = require("semver")

const versions = `0.0.0 0.0.1 0.0.3 0.0.4 0.1.0 0.2.2 0.2.3 0.2.9 0.3.0 0.9.9 1.0.0-0 1.0.0-alpha 1.0.0-alpha.1
1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0 1.0.0+build 1.0.1 1.2.2 1.2.3-alpha 1.2.3-beta.1 1.2.3-beta.2 1.2.3-beta.4
1.2.3 1.2.4-beta.9 1.2.4 1.2.9 1.3.0-0 1.3.0 1.4.99 1.5.0 1.17.99 1.18.0 1.18.33-rc.1 1.18.33 1.18.34 1.19.0 1.99.99
2.0.0-0 2.0.0-beta 2.0.0 2.5.1 3.0.0 10.0.0 v1.2.3 =1.2.3 1.2 1 latest 1.2.3.4 01.2.3 1.02.3`.split(/\s+/)

const plain = ["1.2.3", "1.2", "1", "0.2.3", "0.0.3", "0.0", "0", "1.2.3-beta.2", "1.2.3-beta", "1.0.0-0", "1.x", "1.2.x", "x", "*", "1.*", "1.2.*",
  "1.X.X", "v1.2.3", "1.2.3+build", "1.18.33"]
const operators = ["", "=", "^", "~", "~>", ">", ">=", "<", "<=", "v", "= ", "^ ", "~ ", "> ", ">= ", "< ", "<= "]
const whole = ["", " ", "||", "latest", "next", "nonsense", "1.2.3.4", ">=", "^", "<", "-", "1 -", "- 1", "a || 1.x", "1.x || a", "01.2.3", "1.02",
  ">01.2.3", "1.2.3 - 1.4", "1.2 - 1.4.99", "1 - 2", "1.2.3-beta.1 - 1.2.3", "0.9 - 1", "* - 1", "1 - *", "1.2.3 -1.4", "1.2.3- 1.4",
  ">=1.0.0 <1.18.0", ">=1.0.0 <1.18.0 || >=1.18.30", "0.9 || ^1.18", ">1.0.0 <1.2", ">=1.2.3-beta.1 <2", ">1.2.3-alpha <1.2.3-beta.3",
  ">=1.2.3-beta <=1.2.3", "^1.2.3-beta.2 || 0.x", "<2.0.0-beta", ">=2.0.0-0", "<1.0.0-beta.11 >=1.0.0-alpha", "1.2.3 || 1.2.4", "1.2.3||1.2.4",
  "1.x||>=2.5.0||5.0.0 - 7.2.3", ">=1.2.3 <1.2.3", "<1.2.3 >1.2.3", ">1 <1", "1.2.3 1.2.4", "1.x 1.2.x", "^1 ~1.2", ">=1, <2", ">=1,<2",
  "^1.2.3 ^1.3", "^^1", "~^1", ">>1", "=<1", "=>1", "!1", "1.2.3 ", "  1.2.3", "\t^1.2.3\n", "^1.2.3 || ", " || ^1.2.3", "1.2.3 |  | 2",
  "1.2.3 | 2", "workspace:*", "npm:a@1", "git+ssh://a", "./a", "^1.2.3-", "^1.2.3+", "1.2.3-beta_1", "1.2.3-01", "1.2.3-a..b", "1.2-beta",
  "^1-beta", "~1.2-0", ">1.2-beta", "<1.2-beta", ">=1.x-beta", "99999999999999999999.0.0", ">9007199254740991.0.0", ">9007199254740992.0.0",
  "^9007199254740991.0.0", "1.2.3-beta.2+build", "^v1.2", ">=v1.2.3", "== 1.2.3", "==1.2.3", "~>1", "~> 1.2.3-beta", "X.1.2", "1.x.3", "^x", "^*",
  ">*", "<*", ">=*", "<=*", "=*", "> x", "1.2.3 - ", "^1.2 - 2", "1.2.3 - ^2", "(1.2.3)", "'1.2.3'", "1.2.3 ; 2", "ｖ1.2.3", "١.٢.٣"]

const ranges = [...new Set([...operators.flatMap((operator) => plain.map((it) => operator + it)), ...whole])]
const satisfied = Object.fromEntries(ranges.map((range) => [range, versions.filter((it) => semver.satisfies(it, range))]))
const valid = versions.filter((it) => semver.valid(it))
const lines = Object.entries(satisfied).map(([range, list]) => `    ${JSON.stringify(range)}: ${JSON.stringify(list.join(" "))}`)
console.log(`{
  "semver": ${JSON.stringify(require("semver/package.json").version)},
  "versions": ${JSON.stringify(versions.join(" "))},
  "valid": ${JSON.stringify(valid.join(" "))},
  "ranges": {
${lines.join(",\n")}
  }
}`)
