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

function begin(database: Database) {
  return database.transaction(['log', 'turns', 'sessions', 'messages', 'parts'], 'readwrite', { durability: 'strict' })
}

/** The log: records in order, each with the hash of what came before it and its own, as in the store of the native program. */
export class Log {
  constructor(
    readonly database: Database,
    readonly kernel: Kernel,
  ) {}

  /** Writes a step: all of it, or nothing. When this returns, it outlives the worker. */
  async append({ turn, rows, effects }: Step): Promise<void> {
    const tx = begin(this.database)
    await this.#seal(tx, rows)
    await tx.objectStore('turns').put(turn)
    for (const effect of effects) {
      if (effect.kind === 'publish') await project(tx, effect.event)
      if (effect.kind === 'patch_session') await patch(tx, turn.session, effect.patch)
    }
    await tx.done
  }

  /** Writes records that belong to no step: how a tool was run, what a hook did. */
  async note(rows: Row[]): Promise<void> {
    if (rows.length === 0) return
    const tx = begin(this.database)
    await this.#seal(tx, rows)
    await tx.done
  }

  async #seal(tx: Transaction, rows: Row[]): Promise<void> {
    const log = tx.objectStore('log')
    const last = (await log.openCursor(null, 'prev'))?.value
    const hashes = this.kernel.call('log.seal', { before: last?.hash ?? '', rows })
    let seq = last?.seq ?? 0
    for (const [place, row] of rows.entries()) {
      seq += 1
      const step = row.kind === 'turn_step' && row.turn !== null ? { step: row.turn } : {}
      await log.add({ ...row, ...step, seq, hash: hashes[place] ?? '' })
    }
  }

  /** The texts of a turn's steps, from which it is replayed. */
  async steps(turn: string): Promise<string[]> {
    const rows = await this.database.getAllFromIndex('log', 'step', IDBKeyRange.bound([turn, 0], [turn, Infinity]))
    return rows.map((row) => row.body)
  }

  /** What was published in a session. */
  async events(session: string): Promise<string[]> {
    const rows = await this.database.getAllFromIndex('log', 'session', IDBKeyRange.bound([session, 0], [session, Infinity]))
    return rows.filter((row) => row.kind === 'event').map((row) => row.body)
  }

  /** Turns that have not ended. */
  unfinished(): Promise<TurnRow[]> {
    return this.database.getAllFromIndex('turns', 'done', 0)
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
