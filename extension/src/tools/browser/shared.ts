/** What the browser's tools have in common: pieces of their schemas, which tab is meant, what is asked about a page. */
import type { Fields, Json, ToolOutput } from '../../kernel/types'
import { type Ask, type Context, object, ToolError } from '../tool'
import type { Dialog } from './records'
import { permissionOf } from './site'

export const string = { type: 'string' }
export const tab = { type: 'string', description: 'a tab, as t1; without it the last one used' }
export const ref = { type: 'string', description: 'an element, as e12' }
export const whole = { type: 'integer', minimum: 1 }
export const point = object({ x: { type: 'number' }, y: { type: 'number' } }, ['x', 'y'])
const count = { type: 'integer', minimum: 0 }
export const expect: Json = {
  type: 'array',
  items: object(
    {
      url: string, title: string, text: string, gone: string, ref: string, role: string, name: string, count, value: string, state: string, request: string,
      method: string, status: count, no_console_error: { type: 'boolean' }, stable: { type: 'boolean' }, download: string,
    },
    [],
  ),
}

/** Why nothing is done while a dialog is open. */
export function dialogError({ type, message }: Dialog): ToolError {
  return new ToolError('browser.dialog', `A dialog is open (${type}): ${JSON.stringify(message)}; answer it with the action dialog`)
}

export function provided({ provider, host }: Context) {
  if (provider !== 'cdp-ext') throw new ToolError('tool.unavailable', `the provider ${provider} is not connected`)
  return host.desk
}

/** The question about the page that a tab shows. */
export async function page(input: Fields, context: Context): Promise<Ask[]> {
  const { id } = provided(context).tab(context.call.session_id, input['tab'])
  const { url } = await chrome.tabs.get(id)
  return url && url !== 'about:blank' ? [permissionOf(url)] : []
}

export function text(title: string, output: string, metadata: Fields): ToolOutput {
  return { title, output, metadata }
}
