import type { Database, PlannedWrite } from '../log/database'
import { LARGE, writeLarge } from './large'
import { normal } from './path'
import { folder as folderAt, folderOf, found, hash, nameOf } from './place'

/** The workspace: a folder of the browser's own, which no page and no other program sees (OPFS).
 *
 * A change of a file is planned before it is made: the plan says what the file was and what it will be, under the key of the call. A call
 * that is made again after the worker died finds its plan, and does what is left of it. */
export class Workspace {
  constructor(private readonly database: Database) {}

  /** The bytes of a file, or null where there is none. Throws where one was written that the browser has removed since. */
  async read(path: string): Promise<Uint8Array | null> {
    const handle = await this.#file(path, false)
    if (handle) return new Uint8Array(await (await handle.getFile()).arrayBuffer())
    const written = await this.database.get('files', normal(path))
    if (written) throw new Error(`${path} is gone: the browser has removed it (${written.size} bytes were written); write it again`)
    return null
  }

  /** Names in a folder, those of folders with a slash; null where it is none. */
  async list(path: string): Promise<string[] | null> {
    const folder = await folderAt(normal(path).split('/').filter(Boolean), false)
    if (!folder) return null
    const names: string[] = []
    for await (const [name, handle] of folder.entries()) names.push(handle.kind === 'directory' ? `${name}/` : name)
    return names.toSorted()
  }

  /** Writes a whole file. */
  write(path: string, bytes: Uint8Array, key: string): Promise<void> {
    return this.#carryOut(key, path, async () => bytes)
  }

  /** Changes the text of a file that is there. */
  change(path: string, key: string, make: (before: string) => string): Promise<void> {
    return this.#carryOut(key, path, async (before) => {
      if (!before) throw new Error(`There is no file ${path}`)
      return new TextEncoder().encode(make(new TextDecoder().decode(before)))
    })
  }

  async #carryOut(key: string, path: string, make: (before: Uint8Array | null) => Promise<Uint8Array>): Promise<void> {
    const handle = await this.#file(path, false)
    const before = handle && new Uint8Array(await (await handle.getFile()).arrayBuffer())
    const now = before ? await hash(before) : ''
    let plan = await this.database.get('plans', key)
    if (!plan) {
      const bytes = await make(before)
      plan = { key, path, before: now, after: await hash(bytes), bytes }
      await this.database.put('plans', plan)
    }
    if (now === plan.after) return
    // A file that is half written is what the plan left; any other one is somebody else's.
    if (now !== plan.before && before && !startsWith(plan.bytes, before)) {
      throw new Error(`${path} was changed while the change of it was under way; read it again`)
    }
    await this.#put(plan)
  }

  async #put({ key, path, bytes, after }: PlannedWrite): Promise<void> {
    const full = new Error(`cannot write ${path}: the browser gives this extension no more room; delete files of the workspace`)
    const { quota = Infinity, usage = 0 } = await navigator.storage.estimate()
    if (quota - usage < bytes.length) throw full
    try {
      if (bytes.length >= LARGE) await writeLarge(key)
      else await this.#putSmall(path, bytes)
    } catch (error) {
      throw error instanceof DOMException && error.name === 'QuotaExceededError' ? full : error
    }
    await this.database.put('files', { path: normal(path), size: bytes.length, hash: after })
  }

  async #putSmall(path: string, bytes: Uint8Array): Promise<void> {
    const handle = await this.#file(path, true)
    if (!handle) throw new Error(`cannot write ${path}: a file stands where a folder is needed`)
    // What is written is in place only when the stream is closed: a worker that dies leaves the file as it was.
    const stream = await handle.createWritable()
    await stream.write(bytes as Uint8Array<ArrayBuffer>)
    await stream.close()
  }

  async #file(path: string, create: boolean): Promise<FileSystemFileHandle | null> {
    const name = nameOf(path)
    const folder = name && (await folderOf(path, create))
    return folder ? found(folder.getFileHandle(name, { create })) : null
  }
}

function startsWith(whole: Uint8Array, part: Uint8Array): boolean {
  return part.length <= whole.length && part.every((byte, place) => byte === whole[place])
}
