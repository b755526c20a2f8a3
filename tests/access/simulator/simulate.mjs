// Reads a list of simulations from standard input and writes a list of verdicts to standard output, both as JSON.
import { readFileSync } from 'node:fs'
import { runSimulation } from '@cloud-copilot/iam-simulate'

const verdicts = []
for (const simulation of JSON.parse(readFileSync(0, 'utf8'))) {
  const { resultType, overallResult, errors, result, results } = await runSimulation(simulation, {})
  const parts = result ? [result] : (results ?? [])
  verdicts.push({
    result: resultType === 'error' ? 'Error' : overallResult,
    errors: errors ?? null,
    ignored: [...new Set(parts.flatMap((part) => part.ignoredContextKeys ?? []))],
    blockedBy: [...new Set(parts.flatMap((part) => part.analysis.blockedBy ?? []))],
    identity: parts.map((part) => part.analysis.identityAnalysis?.result),
    resource: parts.map((part) => part.analysis.resourceAnalysis?.result)
  })
}
process.stdout.write(JSON.stringify(verdicts))
