// The good plugin next to the misbehaving one: marks every system prompt, and sends a request to the server now and
// then.
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
