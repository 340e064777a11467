import type { WaitingPermission } from '../api'

type Request = WaitingPermission['request']

/** What is shown of a permission beside its name: who wants it and all that an answer would allow, as the terminal shows it. */
export interface Facts {
  command: string
  diff: string
  rows: Array<{ name: string; text: string }>
}

/** Where the call that asks stands. Nobody else's word stands there. */
const CALL = 'outriggerCall'
const HOOK_REASON = 'hookReason'
/** What the patterns of a permission are. */
const ABOUT: Record<string, string> = {
  bash: 'runs', edit: 'file', external_directory: 'outside', list: 'file', read: 'file', task: 'agent', webfetch: 'address', websearch: 'query',
}
/** Whose questions have metadata of ours; those of others are their own words. */
const OURS = new Set(['apply_patch', 'bash', 'doom_loop', 'edit', 'external_directory', 'glob', 'grep', 'list', 'lsp', 'python', 'question', 'read', 'sandbox', 'skill', 'table', 'task', 'todowrite', 'webfetch', 'websearch', 'write'])

/** Characters that a reader does not see, or that put others in another order, are shown by their numbers. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu, (it) => (it === '\n' || it === '\t' ? it : `\\u{${(it.codePointAt(0) ?? 0).toString(16)}}`))
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

/** Arguments by name; a text of several lines is set in, so that it cannot pass for another argument. */
function named(fields: Record<string, unknown>): string {
  const lines = Object.entries(fields).map(([key, value]) => {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    return `${key.replaceAll('\n', ' ')}: ${text.includes('\n') ? text.split('\n').map((line) => `\n    ${line}`).join('') : text}`
  })
  return lines.join('\n')
}

/** One who had a part in a call, in words. */
function cause(value: unknown): string {
  const { by, topPluginId, subPluginId, did, what } = record(value)
  const plugin = [topPluginId, subPluginId].map(string).filter(Boolean).join('/')
  return [string(by), plugin, string(did), string(what)].filter(Boolean).join(' ')
}

export function facts(request: Request): Facts {
  const { metadata } = request
  const isOurs = OURS.has(request.permission)
  const call = record(metadata[CALL])
  const [tool, input] = [string(call['tool']), record(call['input'])]
  // A question of a plugin's tool may have a command of its own words: that is not what runs.
  const command = tool === 'bash' ? string(input['command']) : tool === '' && isOurs ? string(metadata['command']) : ''
  const patterns = request.patterns.join('\n')
  const programs = Array.isArray(metadata['programs']) ? metadata['programs'].map(string).join('\n') : ''
  const isToolOurs = tool === '' ? isOurs : OURS.has(tool)
  const diff = isToolOurs ? string(metadata['diff']) : ''
  const { [CALL]: _call, [HOOK_REASON]: _reason, ...rest } = metadata
  const { timeout: _timeout, description: _description, ...others } = input
  const rows: Array<[string, string]> = [
    ['by', (request.provenance ?? []).map(cause).join(', ')],
    ['because', string(metadata[HOOK_REASON]) || (request.permission === 'sandbox' ? string(metadata['reason']) : '')],
    ['tool', (tool !== '' && tool !== request.permission) || !isOurs ? tool || request.permission : ''],
    [ABOUT[request.permission] ?? 'about', patterns !== '*' && patterns !== command ? patterns : ''],
    ['folder', command ? string(input['workdir']) : ''],
    ['program', command ? programs : ''],
    ['unclear', isToolOurs ? string(metadata['unclear']) : ''],
    ['printed', request.permission === 'sandbox' ? string(metadata['output']) : ''],
    ['with', command || diff ? '' : named(tool === '' ? record(metadata['input']) : others)],
    ['says', isToolOurs ? '' : named(rest)],
    ['always', request.always.map((it) => (it === '*' ? 'all calls of this kind' : it)).join('\n')],
  ]
  return {
    command: visible(command),
    diff: visible(diff),
    rows: rows.filter(([, text]) => text !== '').map(([name, text]) => ({ name, text: visible(text) })),
  }
}
