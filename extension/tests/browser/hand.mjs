import { within } from './chromium.mjs'

// A model that a test plays call by call: each call is made when the test says so, and its answer comes back to the test.

/** How long a call may take, in milliseconds. Nothing is asserted about it. */
const ANSWER_TIMEOUT = 120_000

/** The test's hand in one conversation. */
export class Hand {
  #calls = []
  #waiting = null
  #answers = []
  #answered = null
  #count = 0

  constructor(world, page, session) {
    this.world = world
    this.page = page
    this.session = session
    this.world.hand = this
  }

  /** Begins a turn. */
  async begin() {
    this.turn = `trn_${this.session}_${++this.#count}`
    this.#answers = []
    // Who waits for an answer of the turn before gets none of this one's.
    this.#answered = null
    await this.page.tell('prompt', { session: this.session, text: 'play', turn: this.turn })
    await this.#answer()
  }

  /** Makes a call; the answer is what the model reads of it. */
  async call(tool, input) {
    this.#say({ step: 0, tool, input })
    // A call that waits for a person who is not asked by the test never ends.
    return within(this.#answer(), `${tool} ${JSON.stringify(input).slice(0, 200)}`, ANSWER_TIMEOUT)
  }

  /** The worker was ended while it waited for the model: the next one asks again. */
  async again() {
    this.#waiting = null
    this.#answers = []
    await this.page.tell('sessions')
    await this.#answer()
  }

  /** The model has nothing more to do. */
  async end() {
    this.#say(null)
    await this.page.tell('ended', { session: this.session })
  }

  /** The worker asks the model. */
  next(messages) {
    const last = messages.at(-1)
    this.#answers.push(last.role === 'tool' ? last.content : '')
    this.#answered?.()
    if (this.#calls.length > 0) return this.#calls.shift()
    return new Promise((resolve) => (this.#waiting = resolve))
  }

  #say(call) {
    if (!this.#waiting) return this.#calls.push(call)
    this.#waiting(call)
    this.#waiting = null
  }

  async #answer() {
    while (this.#answers.length === 0) await new Promise((resolve) => (this.#answered = resolve))
    return this.#answers.shift()
  }
}

/** By what name the first line with this text is referred to. */
export function reference(output, part) {
  const line = output.split('\n').find((it) => it.includes(part))
  const name = line?.split(/\s+/).find((it) => /^e\d+$/.test(it))
  if (!name) throw new Error(`no ${part} in ${output}`)
  return name
}
