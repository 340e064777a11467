// Until what an event has set off has been drawn.
new Promise((done) => { const timer = setTimeout(done, 120); requestAnimationFrame(() => setTimeout(() => { clearTimeout(timer); done() }, 0)) }).then(() => [document.readyState, Math.round(document.documentElement?.scrollHeight ?? 0)].join())
