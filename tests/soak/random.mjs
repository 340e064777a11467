// The misbehaving plugin (crates/outrigger-test-support/src/misbehaving.mjs, copied beside this file) at random: each call of a
// hook or of its tool does some fault with the probability of the option `chance`. Options: {chance, faults: {name: weight}}.
import { appendFileSync } from "node:fs"
import misbehaving from "./misbehaving.mjs"

const HOOKS = ["experimental.chat.system.transform", "chat.params", "tool.execute.before"]

export default {
  id: "random",
  server: async (input, { chance, faults }) => {
    const names = Object.entries(faults)
    const total = names.reduce((sum, [, weight]) => sum + weight, 0)
    const pick = () => {
      if (Math.random() >= chance) return undefined
      let left = Math.random() * total
      const [name] = names.find(([, weight]) => (left -= weight) < 0) ?? names[0]
      // Written before it is done: some of them do not return.
      try { appendFileSync(`${input.directory}/faults.log`, `${name}\n`) } catch {}
      return name
    }
    const hook = (where) => async (given, output) => {
      const fault = pick()
      if (!fault) return
      const hooks = await misbehaving(input, { fault, where })
      return hooks[where](given, output)
    }
    return {
      ...Object.fromEntries(HOOKS.map((where) => [where, hook(where)])),
      tool: {
        act: {
          description: "acts",
          args: {},
          async execute(args, context) {
            const fault = pick()
            if (!fault) return "done"
            const hooks = await misbehaving(input, { fault, where: "tool" })
            return hooks.tool.act.execute(args, context)
          },
        },
      },
    }
  },
}
