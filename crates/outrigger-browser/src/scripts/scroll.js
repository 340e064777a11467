// Called on an element, or a document: scrolls it, or what it is in.
function (x, y) {
  if (x === null) { this.scrollIntoView?.({ block: "center" }); return { moved: true } }
  const page = document.scrollingElement ?? document.documentElement
  let at = this.nodeType === Node.ELEMENT_NODE ? this : page
  for (; at && at !== page; at = at.parentElement) {
    const style = getComputedStyle(at)
    const can = (over, size, seen) => /auto|scroll|overlay/.test(over) && size > seen
    if ((y && can(style.overflowY, at.scrollHeight, at.clientHeight)) || (x && can(style.overflowX, at.scrollWidth, at.clientWidth))) break
  }
  at ??= page
  const before = [at.scrollLeft, at.scrollTop]
  at.scrollBy({ left: x, top: y, behavior: "instant" })
  return { moved: before[0] !== at.scrollLeft || before[1] !== at.scrollTop }
}
