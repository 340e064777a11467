// A logging proxy on loopback: the requests of a client to a server, and their responses. usage: node proxy.mjs TARGET_URL LOG   (it
// prints "proxy on PORT"); LOG gets one JSON line per request, and one per event of a stream.
import fs from 'node:fs'
import http from 'node:http'

const [target, log] = process.argv.slice(2)
const base = new URL(target)
const write = (row) => fs.appendFileSync(log, JSON.stringify(row) + '\n')
const json = (text) => { try { return JSON.parse(text) } catch { return text.slice(0, 2000) } }
let number = 0

const server = http.createServer((request, response) => {
  const id = ++number
  const sent = []
  const onward = http.request({ host: base.hostname, port: base.port, method: request.method, path: request.url, headers: { ...request.headers, host: base.host } }, (answer) => {
    const stream = (answer.headers['content-type'] ?? '').includes('event-stream')
    const got = []
    let rest = ''
    const row = () => ({ id, method: request.method, url: request.url, headers: request.headers, body: sent.length ? json(Buffer.concat(sent).toString()) : undefined, status: answer.statusCode, type: answer.headers['content-type'] })
    if (stream) write({ ...row(), stream: true })
    response.writeHead(answer.statusCode, answer.headers)
    answer.on('data', (part) => {
      response.write(part)
      if (!stream) return got.push(part)
      rest += part.toString()
      const events = rest.split('\n\n')
      rest = events.pop()
      for (const event of events) write({ id, event: json((/^data: (.*)$/m.exec(event) ?? ["", event])[1]) })
    })
    answer.on('end', () => {
      if (!stream) write({ ...row(), answer: json(Buffer.concat(got).toString()) })
      response.end()
    })
    response.on('close', () => answer.destroy())
  })
  onward.on('error', (error) => { write({ id, method: request.method, url: request.url, error: String(error) }); response.destroy() })
  request.on('data', (part) => { sent.push(part); onward.write(part) })
  request.on('end', () => { if (request.method !== 'GET') write({ id, sent: request.method + ' ' + request.url }); onward.end() })
})
server.on('upgrade', (request, socket) => { write({ method: 'UPGRADE', url: request.url, headers: request.headers }); socket.destroy() })
server.listen(0, '127.0.0.1', () => console.log('proxy on', server.address().port))
