import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

export interface Series {
  label: string
  /** A custom property of the style sheet. */
  colour: string
  values: (number | null)[]
  format: (value: number) => string
  /** Axis: the left one or the right one. */
  right?: boolean
  /** The axis reaches this at least. */
  atLeast?: number
}

/** Drawn colours do not follow the style sheet by themselves. */
function useTheme(): string {
  const read = () => document.documentElement.dataset['theme'] ?? ''
  const [theme, setTheme] = useState(read)
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(read()))
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => observer.disconnect()
  }, [])
  return theme
}

/** Seconds between two labels of a time axis. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600]

const clock = (at: number): string => new Date(at * 1000).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** Lines over a shared axis. What it shows is said in words beside it, for those who do not see it. */
export function Chart({ label, x, series, time, height = 200 }: { label: string; x: number[]; series: Series[]; time: boolean; height?: number }) {
  const box = useRef<HTMLDivElement>(null)
  const theme = useTheme()
  useEffect(() => {
    const element = box.current
    if (!element || !x.length) return
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--border'), width: 1 }, ticks: { show: false }, font: '12px system-ui' }
    const side = (right: boolean) => {
      const one = series.find((it) => Boolean(it.right) === right)
      return one && { ...axis, scale: right ? 'right' : 'left', side: right ? (1 as const) : (3 as const), size: 64, grid: { ...axis.grid, show: !right }, values: (_: uPlot, all: number[]) => all.map(one.format) }
    }
    const range = (right: boolean) => (_: uPlot, __: number, max: number | null): [number, number] => {
      const least = Math.max(...series.filter((it) => Boolean(it.right) === right).map((it) => it.atLeast ?? 0), 0)
      return [0, Math.max((max ?? 0) * 1.1, least) || 1]
    }
    const whole = (it: number) => (Number.isInteger(it) ? String(it) : '')
    const below = { ...axis, space: time ? 110 : 50, ...(time ? { incrs: STEPS } : {}), values: (_: uPlot, all: number[]) => all.map(time ? clock : whole) }
    const axes = [below, side(false), side(true)].filter((it) => it !== undefined)
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        scales: { x: { time }, left: { range: range(false) }, right: { range: range(true) } },
        axes,
        legend: { show: false },
        cursor: { points: { size: 6 } },
        series: [{}, ...series.map((one) => ({ label: one.label, scale: one.right ? 'right' : 'left', stroke: colour(one.colour), width: 2, points: { show: x.length < 40, size: 5 } }))],
      },
      [x, ...series.map((one) => one.values)] as uPlot.AlignedData,
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [x, series, time, height, theme])
  return (
    <figure className="chart">
      <figcaption>
        <span className="legend">
          {series.map((one) => (
            <span key={one.label}>
              <i className="kind" style={{ background: `var(${one.colour})` }} /> {one.label}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={box} role="img" aria-label={label} style={{ height }} />
    </figure>
  )
}
