// The cases of tests/it, asked of the WebAssembly: every answer has the bytes of the native one.
//
//     node laws.mjs KERNEL.wasm FOLDER
//
// FOLDER has files NAME.jsonl; a line is one case, a list of [request, answer]. Each case has a kernel of its own.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const [file, folder] = process.argv.slice(2)
const module = new WebAssembly.Module(readFileSync(file))

function kernel() {
  const { memory, alloc, call, out } = new WebAssembly.Instance(module, {}).exports
  return (request) => {
    const bytes = Buffer.from(request)
    const place = alloc(bytes.length)
    new Uint8Array(memory.buffer, place, bytes.length).set(bytes)
    const length = call()
    return Buffer.from(memory.buffer, out(), length).toString()
  }
}

const counts = []
for (const name of readdirSync(folder).toSorted()) {
  const cases = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')
  let calls = 0
  for (const [number, line] of cases.entries()) {
    const ask = kernel()
    for (const [request, wanted] of JSON.parse(line)) {
      const answer = ask(request)
      calls += 1
      if (answer !== wanted) {
        console.error(`${name}, case ${number + 1}: the answers differ\nasked  ${request}\nnative ${wanted}\nwasm   ${answer}`)
        process.exit(1)
      }
    }
  }
  counts.push(`${name.replace('.jsonl', '')} ${cases.length} cases (${calls} calls)`)
}
if (counts.length === 0) throw new Error(`${folder} has no cases`)
console.log(`native and wasm answer alike: ${counts.join(', ')}`)
