// The good plugin beside the misbehaving one: marks every system prompt, and asks the server something now and then.
export default {
  id: "good",
  server: async ({ serverUrl }) => {
    let calls = 0
    return {
      "experimental.chat.system.transform": async (_, output) => {
        output.system.push("The good plugin was here.")
        if (++calls % 20 === 0) await fetch(new URL("/session", serverUrl)).then((answer) => answer.text())
      },
      event: async () => {},
    }
  },
}
