/** A path from the root of the workspace, without `.` and `..`. What leads above the root is refused. */
export function normal(path: string): string {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    if (name !== '..') names.push(name)
    else if (names.pop() === undefined) throw new Error(`${path} leads out of the workspace`)
  }
  return names.join('/')
}
