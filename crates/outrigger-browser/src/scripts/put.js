// Called on a file field with the name of a file and its bytes in Base64: the browser has no name of it that it may read.
function (name, base64) {
  if (!this.isConnected) return { gone: true }
  if (this.localName !== "input" || this.type !== "file") return { why: "it is not a field for a file" }
  if (this.disabled) return { why: "it is disabled" }
  const list = new DataTransfer()
  list.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name))
  this.files = list.files
  for (const kind of ["input", "change"]) this.dispatchEvent(new Event(kind, { bubbles: true, composed: true }))
  return {}
}
