/** Where files of the workspace are in the browser's own file system (OPFS). */
import { normal } from './path'

export function nameOf(path: string): string {
  return normal(path).split('/').at(-1) ?? ''
}

/** The folder that a file is in, or null where there is none. */
export function folderOf(path: string, create: boolean): Promise<FileSystemDirectoryHandle | null> {
  return folder(normal(path).split('/').filter(Boolean).slice(0, -1), create)
}

/** A folder by the names that lead to it from the root of the workspace, or null where there is none. */
export async function folder(names: string[], create: boolean): Promise<FileSystemDirectoryHandle | null> {
  const root = await navigator.storage.getDirectory()
  let at: FileSystemDirectoryHandle | null = await found(root.getDirectoryHandle('workspace', { create: true }))
  for (const name of names) at = at && (await found(at.getDirectoryHandle(name, { create })))
  return at
}

/** What a handle is asked for, or null where there is nothing of its kind. */
export async function found<T>(handle: Promise<T>): Promise<T | null> {
  try {
    return await handle
  } catch (error) {
    if (error instanceof DOMException && (error.name === 'NotFoundError' || error.name === 'TypeMismatchError')) return null
    throw error
  }
}

/** SHA-256, in hexadecimal digits. */
export async function hash(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
