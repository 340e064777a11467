// Called on a field: puts the cursor in it and selects what it holds; sets what cannot be typed. `how` says who types: "by keys" whoever
// calls; "replace" and "add" we, at once and in this document alone, whatever takes the focus.
function (text, how) {
  const field = this
  if (!field.isConnected) return { gone: true }
  if (field.matches(":disabled") || field.readOnly) return { why: "it cannot be written to" }
  // What is typed by us is a secret: the field is the user's from now on, whatever becomes of its type, and shows dots.
  const protect = () => {
    const words = field.getAttribute("autocomplete") ?? ""
    if (!/(current|new)-password/i.test(words)) field.setAttribute("autocomplete", `${words} current-password`.trim())
    field.style.setProperty("-webkit-text-security", "disc", "important")
    for (const kind of ["copy", "cut", "dragstart"]) field.addEventListener(kind, (event) => event.preventDefault(), true)
  }
  const put = () => document.execCommand("insertText", false, text) ? { set: true } : { why: "it did not take the text" }
  const picked = ["date", "time", "datetime-local", "month", "week", "color", "range"]
  if (how !== "by keys" && (field.isContentEditable || picked.includes(field.type))) return { why: "a secret is typed in fields for text alone, which then show dots" }
  if (field.localName === "input" && picked.includes(field.type)) {
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set
    field.focus(); set.call(field, text)
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true, composed: true }))
    return field.value === text || field.type === "range" ? { set: true } : { why: `it does not take ${JSON.stringify(text)} (type ${field.type})` }
  }
  if (field.localName === "input" || field.localName === "textarea") {
    if (["checkbox", "radio", "file", "submit", "button", "image", "reset", "hidden"].includes(field.type)) return { why: `it is not a field for text (type ${field.type})` }
    field.focus()
    if (how !== "add") field.select()
    if (how !== "by keys") protect()
    return how === "by keys" ? { typed: true, empty: field.value === "" } : put()
  }
  if (field.isContentEditable) {
    field.focus()
    const range = document.createRange(); range.selectNodeContents(field)
    const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range)
    return { typed: true, empty: field.textContent === "" }
  }
  return { why: "it is not a field for text" }
}
