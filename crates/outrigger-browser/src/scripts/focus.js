// Called on an element or a document: what has the focus in its document. `frame`: a frame of another site has it.
function () {
  let field = (this.ownerDocument ?? this).activeElement
  for (let inner = field; inner; ) {
    field = inner
    inner = inside(field)
  }
  if (!field) return {}
  const get = (name) => field.getAttribute(name) ?? ""
  return { type: field.type ?? "", autocomplete: get("autocomplete"), name: get("name"), id: field.id ?? "", frame: ["iframe", "frame"].includes(field.localName) }

  function inside(element) {
    return element.shadowRoot?.activeElement ?? element.contentDocument?.activeElement
  }
}
