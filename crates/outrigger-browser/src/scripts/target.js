// Called on an element: what rules are asked about.
function () {
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement
  if (!element) return {}
  const button = element.closest("button, input[type=submit], input[type=image]")
  const get = (name) => element.getAttribute(name) ?? ""
  return { type: element.type ?? "", autocomplete: get("autocomplete"), name: get("name"), id: element.id ?? "",
    submits: Boolean(button?.form && button.type !== "button" && button.type !== "reset"), checked: element.checked ?? element.getAttribute("aria-checked") === "true",
    file: element.type === "file", value: value(element) }

  function value(field) {
    if (field.localName === "select") return [...field.selectedOptions].map((option) => option.label.trim() || option.value).join(", ")
    if (field.type === "checkbox" || field.type === "radio" || field.hasAttribute("aria-checked")) return String(field.checked ?? field.getAttribute("aria-checked") === "true")
    return field.value ?? (field.isContentEditable ? field.textContent : null)
  }
}
