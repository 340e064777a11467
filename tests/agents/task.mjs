// The task that every agent is given: read a file, change it, run a test, be refused a command.
// What a request has results of says how far its agent is, so that an answer does not depend on who asked before.

/** One step a request: what is thought, what is said, and what is done, which each API names in its own way. */
const STEPS = [
  { thought: 'First I read the file, then I change it.', words: 'I read the file that I am to change.', does: 'read' },
  { words: 'It says one, and now it says two.', does: 'change' },
  { words: 'Whether that is right, the test says.', does: 'test' },
  { words: 'The folder is not needed any more.', does: 'remove' },
  { words: 'All done: one became two, the test passes, the folder was not removed.' },
]

/** What commands say, for the agents that have one tool for all of them. */
export const COMMANDS = {
  read: { command: 'cat calc.txt', description: 'Read the file' },
  test: { command: 'sh test.sh', description: 'Run the test' },
  remove: { command: 'rm -r keep', description: 'Remove a folder' },
}

/** The step after this many results. */
export const step = (results) => ({ number: results, ...STEPS[Math.min(results, STEPS.length - 1)] })

/** A text in the pieces that a model writes it in. */
export const pieces = (text) => text.match(/\S+\s*/g) ?? []
