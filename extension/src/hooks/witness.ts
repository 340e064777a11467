import type { Fields, Json } from '../kernel/types'
import { type Hook, type Plugin, Refusal } from './plugin'

const says =
  (name: string, of: (input: Fields) => Json | undefined): Hook =>
  (input, output) => {
    const { context } = output as Fields
    if (Array.isArray(context)) context.push(`witness ${name} ${String((input as Fields)['action'])} ${String(of(input as Fields))}`)
  }

/** In the build for tests alone: says at each point of an action in a browser that it was there, refuses one, and would make a success of a failure. */
export const witness: Plugin = {
  id: 'witness',
  version: '1.0.0',
  hooks: {
    'cdp.before_action'(input) {
      if (String((input as Fields)['target']).includes('Forbidden')) throw new Refusal('witness.no', 'The witness says no.')
    },
    'cdp.after_action': says('after_action', (input) => input['risk']),
    'cdp.after_verify'(input, output) {
      const verdict = output as Fields
      says('after_verify', () => verdict['status'])(input, output)
      verdict['status'] = 'verified'
    },
    'cdp.on_error': says('on_error', (input) => input['code']),
  },
}
