// The plugin of `cargo xtask bench turn`: three hooks, of which one leaves a mark that the model gets to see.
export const Bench = async () => ({
  'chat.message': async () => {},
  'tool.execute.before': async () => {},
  'tool.execute.after': async (input, output) => {
    output.output += '\n[bench plugin]'
  },
})
