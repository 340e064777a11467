// Called on a list: chooses options by label or value.
function (values) {
  if (this.localName !== "select") return { why: "it is not a list of the browser's own: click it, and then the option" }
  if (this.disabled) return { why: "it is disabled" }
  const flat = (text) => text.replace(/\s+/g, " ").trim()
  const options = [...this.options], chosen = []
  for (const value of values) {
    const option = options.find((it) => flat(it.label) === flat(value)) ?? options.find((it) => it.value === value)
    if (!option) return { why: `it has no option ${JSON.stringify(value)}; it has ${JSON.stringify(options.map((it) => flat(it.label)).slice(0, 40))}` }
    if (option.disabled) return { why: `its option ${JSON.stringify(value)} is disabled` }
    chosen.push(option)
  }
  if (!this.multiple && chosen.length > 1) return { why: "only one option can be chosen" }
  this.focus()
  if (this.multiple) for (const option of options) option.selected = chosen.includes(option)
  else chosen[0].selected = true
  for (const kind of ["input", "change"]) this.dispatchEvent(new Event(kind, { bubbles: true, composed: true }))
  return { chosen: chosen.sort((a, b) => a.index - b.index).map((option) => option.label.trim() || option.value).join(", ") }
}
