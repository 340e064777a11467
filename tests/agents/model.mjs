// An imitation of the models' HTTP APIs on loopback, for agents of other vendors that do one task (task.mjs).
// usage: node model.mjs PROJECT LOG   (it says "model on PORT" once it listens; each request becomes a line of LOG)
import fs from 'node:fs'
import http from 'node:http'
import { anthropic } from './anthropic.mjs'
import { chat } from './chat.mjs'
import { gemini } from './gemini.mjs'
import { responses } from './responses.mjs'

const APIS = { anthropic, chat, gemini, responses }
const [project, log] = process.argv.slice(2)

async function answer(request, response, text) {
  const [name, api] = Object.entries(APIS).find(([, api]) => api.serves(request.url)) ?? []
  const body = text ? JSON.parse(text) : {}
  fs.appendFileSync(log, JSON.stringify({ api: name ?? null, method: request.method, url: request.url, body }) + '\n')
  const json = (status, value) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  if (!api || request.method !== 'POST') return json(404, { error: { message: `${request.url} is not imitated` } })
  const aside = api.aside(request.url, body)
  if (aside) return json(200, aside)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  // One piece a turn of the loop, so that each is a chunk of its own.
  const send = async (value, event) => {
    const data = typeof value === 'string' ? value : JSON.stringify(value)
    response.write(`${event ? `event: ${event}\n` : ''}data: ${data}\n\n`)
    await new Promise((done) => setTimeout(done, 20))
  }
  await api.answer(body, project, send)
  response.end()
}

const server = http.createServer((request, response) => {
  const parts = []
  response.on('error', () => {})
  request.on('data', (part) => parts.push(part))
  request.on('end', () => answer(request, response, Buffer.concat(parts).toString('utf8')).catch((error) => {
    console.error(error)
    response.destroy()
  }))
})
server.listen(0, '127.0.0.1', () => console.log('model on', server.address().port))
