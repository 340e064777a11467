import type { Fields } from '../kernel/types'
import type { Plugin } from './plugin'
import { witness } from './witness'

/** Tells the model where it is: what a workspace in a browser has, and what it has not. */
const workspace: Plugin = {
  id: 'workspace',
  version: '1.0.0',
  hooks: {
    'llm.before_system'(_input, output) {
      const system = (output as Fields)['system']
      if (Array.isArray(system)) system.push('Files are those of a private workspace in this browser: paths begin at its root, and there is no shell.')
    },
  },
}

/** Every plugin of the package, in the order of loading. */
export const BUNDLED: Plugin[] = import.meta.env.MODE === 'faults' ? [workspace, witness] : [workspace]
