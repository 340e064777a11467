// Called on a field: what it holds now.
function () {
  if (this.localName === "select") return [...this.selectedOptions].map((option) => option.label.trim() || option.value).join(", ")
  if (this.type === "checkbox" || this.type === "radio") return String(this.checked)
  return this.value ?? this.textContent ?? ""
}
