// Called on an element: a frame with its reference. A second call of the page takes all of them away.
function (reference) {
  const rect = this.getBoundingClientRect()
  if (!rect.width || !rect.height) return
  const mark = document.createElement("div")
  mark.setAttribute("outrigger-mark", "")
  mark.style.cssText = `all:initial;position:fixed;z-index:2147483647;pointer-events:none;left:${rect.left}px;top:${rect.top}px;width:${rect.width}px;height:${rect.height}px;outline:1px solid #d00`
  const label = document.createElement("div")
  label.textContent = reference
  label.style.cssText = "all:initial;position:absolute;left:0;top:0;font:10px/12px monospace;background:#d00;color:#fff;padding:0 2px"
  mark.append(label)
  document.documentElement.append(mark)
}
