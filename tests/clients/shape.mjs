// The compared part of a response: the path of every value and its type, never the values
// themselves.

// Keys that are identifiers or paths: they differ from run to run.
const IDENTIFIER = /^(ses|msg|prt|per|que|pty|evt|wrk)_/
const name = (key) => (IDENTIFIER.test(key) ? '{id}' : key.startsWith('/') ? '{path}' : key.replaceAll('.', '\\.'))
const type = (value) => (value === null ? 'null' : typeof value)

// The kind of an object, if a list or a field contains several kinds.
function kind(value) {
  if (type(value) !== 'object' || Array.isArray(value)) return ''
  const words = [value.type, value.role ?? value.info?.role, value.type === 'tool' ? value.tool : undefined]
  const said = words.filter((word) => typeof word === 'string')
  return said.length ? `<${said.join(' ')}>` : ''
}

// Collects the paths of `value` in the set `paths`.
export function collect(value, path, paths) {
  if (Array.isArray(value)) {
    paths.add(`${path} array`)
    for (const item of value) collect(item, `${path}[]${kind(item)}`, paths)
  } else if (type(value) === 'object') {
    paths.add(`${path} object`)
    for (const [key, inner] of Object.entries(value)) {
      if (inner === undefined) continue
      const what = key === 'part' || key === 'info' ? kind(inner) : key === 'state' && inner?.status ? `<${inner.status}>` : ''
      collect(inner, `${path}.${name(key)}${what}`, paths)
    }
  } else {
    paths.add(`${path} ${type(value)}`)
  }
  return paths
}

export const shape = (value) => [...collect(value, '$', new Set())].sort()
