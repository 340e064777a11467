import { BRIDGE } from '../bridge/bridge'
import type { Fields } from '../kernel/types'
import { type Ask, type Context, object, type Tool, ToolError } from './tool'
import { normal } from '../workspace/path'

/** Lines of a file that are read where nothing is said. */
const MAX_LINES = 2000
const path = { type: 'string', description: 'from the root of the workspace' }

function pathOf(input: Fields): string {
  return normal(String(input['filePath'] ?? ''))
}

/** The question about a file. Those of a bridge are the user's own, and have names of their own in rules. */
export function fileQuestion(permission: 'read' | 'edit') {
  return async (input: Fields, { provider }: Context): Promise<Ask[]> => {
    const verb = permission === 'read' ? 'Read' : 'Change'
    if (provider === BRIDGE) {
      const path = String(input['filePath'] ?? '')
      return [{ permission, pattern: `${BRIDGE}:${path}`, always: `${BRIDGE}:*`, title: `${verb} the file ${path} of this machine, over the bridge` }]
    }
    const pattern = pathOf(input)
    return [{ permission, pattern, always: pattern, title: `${verb} the file ${pattern}` }]
  }
}

function workspaceOf({ host, provider }: Context) {
  if (provider !== 'opfs') throw new ToolError('tool.unavailable', `the provider ${provider} is not connected`)
  return host.workspace
}

async function text(context: Context, file: string): Promise<string> {
  const bytes = await workspaceOf(context).read(file)
  if (!bytes) throw ToolError.failed(`There is no file ${file}`)
  return new TextDecoder().decode(bytes)
}

const read: Tool = {
  name: 'read',
  description: 'Shows a file of the workspace with the numbers of its lines, or what is in a folder.',
  parameters: object({ filePath: path, offset: { type: 'integer', minimum: 1, description: 'the first line, from 1' }, limit: { type: 'integer', minimum: 1 } }, ['filePath']),
  contract: 'read',
  repeatable: true,
  permissions: fileQuestion('read'),
  async run(input, context) {
    const file = pathOf(input)
    const folder = await workspaceOf(context).list(file)
    if (folder) return { title: file, output: folder.join('\n') || 'The folder is empty.', metadata: {} }
    const lines = (await text(context, file)).split('\n')
    const from = Number(input['offset'] ?? 1) - 1
    const shown = lines.slice(from, from + Number(input['limit'] ?? MAX_LINES))
    const rest = lines.length - from - shown.length
    const numbered = shown.map((line, place) => `${String(from + place + 1).padStart(5)}| ${line}`)
    return { title: file, output: numbered.join('\n') + (rest > 0 ? `\n(${rest} more lines: use offset)` : ''), metadata: {} }
  },
}

const write: Tool = {
  name: 'write',
  description: 'Writes a whole file of the workspace; folders on the way are made.',
  parameters: object({ filePath: path, content: { type: 'string' } }, ['filePath', 'content']),
  contract: 'write',
  repeatable: true,
  permissions: fileQuestion('edit'),
  async run(input, context) {
    const file = pathOf(input)
    const bytes = new TextEncoder().encode(String(input['content']))
    await workspaceOf(context).write(file, bytes, context.key)
    return { title: file, output: `Wrote ${bytes.length} bytes to ${file}`, metadata: {} }
  },
}

const edit: Tool = {
  name: 'edit',
  description: 'Replaces a text in a file. The old text has to stand in it exactly once, or `replaceAll` is set.',
  parameters: object(
    { filePath: path, oldString: { type: 'string', minLength: 1 }, newString: { type: 'string' }, replaceAll: { type: 'boolean' } },
    ['filePath', 'oldString', 'newString'],
  ),
  contract: 'edit',
  repeatable: true,
  permissions: fileQuestion('edit'),
  async run(input, context) {
    const file = pathOf(input)
    await workspaceOf(context).change(file, context.key, (before) => replaced(before, input, file))
    return { title: file, output: `Changed ${file}`, metadata: {} }
  },
}

/** The text with its old part replaced. */
export function replaced(before: string, input: Fields, file: string): string {
  const old = String(input['oldString'])
  const count = before.split(old).length - 1
  if (count === 0) throw ToolError.failed(`${file} does not have the old text`)
  if (count > 1 && input['replaceAll'] !== true) throw ToolError.failed(`${file} has the old text ${count} times; give more of it, or set replaceAll`)
  return before.replaceAll(old, () => String(input['newString']))
}

/** The tools about files. */
export const FILES: Tool[] = [read, write, edit]
