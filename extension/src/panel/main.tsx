import { createRoot } from 'react-dom/client'
import '@web/styles.css'
import './panel.css'
import { Panel } from './Panel'

const root = document.getElementById('root')
if (root) createRoot(root).render(<Panel />)
