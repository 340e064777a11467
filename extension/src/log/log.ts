import type { Kernel } from '../kernel/kernel'
import type { Row, SealedRow } from '../kernel/operations'
import type { BusEvent, Effect, MessageInfo, Part, SessionPatch } from '../kernel/types'
import type { Database, Session, TurnRow } from './database'

/** What a step of a turn changes: its rows, the turn, the tables. */
export interface Step {
  turn: TurnRow
  rows: Row[]
  effects: Effect[]
}

type Transaction = ReturnType<typeof begin>

function begin(database: Database, durability: 'strict' | 'relaxed' = 'strict') {
  return database.transaction(['log', 'packs', 'turns', 'sessions', 'messages', 'parts'], 'readwrite', { durability })
}

/** What changes the world has to be on the disk before it is begun. Other steps outlive the worker and the browser, and where the machine loses
 * its power they are made again: nothing came of them. */
function durabilityOf(effects: Effect[]): 'strict' | 'relaxed' {
  return effects.some(({ kind }) => kind === 'call_model' || kind === 'run_tool' || kind === 'finish') ? 'strict' : 'relaxed'
}

/** A turn that has not ended, with the texts of its steps, from which it is replayed. */
export interface LeftTurn {
  id: string
  session: string
  packs: string[]
  /** Steps that are in no pack yet. */
  steps: string[]
}

/** The turns that another worker left. This needs no kernel, which is compiled meanwhile. */
export async function leftTurns(database: Database): Promise<LeftTurn[]> {
  const turns = await database.getAllFromIndex('turns', 'done', 0)
  return Promise.all(turns.map(({ id, session }) => leftTurn(database, id, session)))
}

async function leftTurn(database: Database, id: string, session: string): Promise<LeftTurn> {
  const packs = await database.getAll('packs', IDBKeyRange.bound([id, 0], [id, Infinity]))
  const packed = packs.at(-1)?.upTo ?? 0
  const rows = await database.getAllFromIndex('log', 'step', IDBKeyRange.bound([id, packed], [id, Infinity], true))
  return { id, session, packs: packs.map((one) => one.steps), steps: rows.map((row) => row.body) }
}

/** So many steps of a turn make a pack. */
const PACK = 64

/** The log: records in order, each with the hash of what came before it and its own, as in the store of the native program. */
export class Log {
  /** Steps of turns that are in no pack yet. */
  readonly #unpacked = new Map<string, string[]>()

  constructor(
    readonly database: Database,
    readonly kernel: Kernel,
  ) {}

  /** Goes on with the steps of a turn. */
  resume({ id, steps }: LeftTurn): void {
    this.#unpacked.set(id, steps)
  }

  /** Writes a step: all of it, or nothing. When this returns, it outlives the worker. */
  async append({ turn, rows, effects }: Step): Promise<void> {
    const tx = begin(this.database, durabilityOf(effects))
    const last = await this.#seal(tx, rows)
    const left = await pack(tx, turn, this.#unpacked.get(turn.id) ?? [], rows, last)
    await tx.objectStore('turns').put(turn)
    for (const effect of effects) {
      if (effect.kind === 'publish') await project(tx, effect.event)
      if (effect.kind === 'patch_session') await patch(tx, turn.session, effect.patch)
    }
    await tx.done
    if (turn.done) this.#unpacked.delete(turn.id)
    else this.#unpacked.set(turn.id, left)
  }

  /** Writes records that belong to no step: how a tool was run, what a hook did. */
  async note(rows: Row[]): Promise<void> {
    if (rows.length === 0) return
    const tx = begin(this.database)
    await this.#seal(tx, rows)
    await tx.done
  }

  /** Writes a session of another program: its rows, and the tables that are made of them. All of it, or nothing. */
  async takeOver(session: Session, rows: Row[], events: BusEvent[]): Promise<void> {
    const tx = begin(this.database)
    await this.#seal(tx, rows)
    if (!(await tx.objectStore('sessions').get(session.id))) await tx.objectStore('sessions').put(session)
    for (const event of events) await project(tx, event)
    await tx.done
  }

  /** Writes rows, each with its hash; answers with the number of the last. */
  async #seal(tx: Transaction, rows: Row[]): Promise<number> {
    const log = tx.objectStore('log')
    const last = (await log.openCursor(null, 'prev'))?.value
    const hashes = this.kernel.call('log.seal', { before: last?.hash ?? '', rows })
    let seq = last?.seq ?? 0
    for (const [place, row] of rows.entries()) {
      seq += 1
      const step = row.kind === 'turn_step' && row.turn !== null ? { step: row.turn } : {}
      await log.add({ ...row, ...step, seq, hash: hashes[place] ?? '' })
    }
    return seq
  }

  /** What was published in a session. */
  async events(session: string): Promise<string[]> {
    const rows = await this.database.getAllFromIndex('log', 'session', IDBKeyRange.bound([session, 0], [session, Infinity]))
    return rows.filter((row) => row.kind === 'event').map((row) => row.body)
  }

  /** The number of the first row that does not follow from those before it, or null. */
  async verify(): Promise<number | null> {
    let before = ''
    for (let from = 0; ; ) {
      const rows: SealedRow[] = await this.database.getAll('log', IDBKeyRange.lowerBound(from, true), 1000)
      const last = rows.at(-1)
      if (!last) return null
      const wrong = this.kernel.call('log.verify', { before, rows })
      if (wrong) return rows[wrong.place]?.seq ?? null
      before = last.hash
      from = last.seq
    }
  }
}

/** Makes a pack of a turn's steps where there are enough of them; those of a turn that has ended are not replayed again. Answers with what is in none. */
async function pack(tx: Transaction, turn: TurnRow, bodies: string[], rows: Row[], upTo: number): Promise<string[]> {
  const all = [...bodies, ...rows.filter((row) => row.kind === 'turn_step').map((row) => row.body)]
  const packs = tx.objectStore('packs')
  if (turn.done) {
    await packs.delete(IDBKeyRange.bound([turn.id, 0], [turn.id, Infinity]))
    return []
  }
  if (all.length < PACK) return all
  await packs.put({ turn: turn.id, upTo, steps: all.join('\n') })
  return []
}

async function project(tx: Transaction, { type, properties }: BusEvent): Promise<void> {
  switch (type) {
    case 'message.updated':
      await tx.objectStore('messages').put(properties['info'] as unknown as MessageInfo)
      return
    case 'message.part.updated':
      await tx.objectStore('parts').put(properties['part'] as unknown as Part)
      return
    case 'message.part.removed':
      await tx.objectStore('parts').delete(properties['partID'] as string)
      return
    case 'message.removed': {
      const id = properties['messageID'] as string
      await tx.objectStore('messages').delete(id)
      for (const key of await tx.objectStore('parts').index('message').getAllKeys(id)) await tx.objectStore('parts').delete(key)
    }
  }
}

async function patch(tx: Transaction, id: string, { usage, cost }: SessionPatch): Promise<void> {
  const sessions = tx.objectStore('sessions')
  const session = (await sessions.get(id)) as Session | undefined
  if (!session) return
  session.updated = Date.now()
  session.cost += cost
  session.input += usage?.input ?? 0
  session.output += usage?.output ?? 0
  await sessions.put(session)
}
