// Utilization of the directions of interfaces, from the rates that agents report.
import type { DirectionRates, HostRates } from "../api.gen";

/** utilization returns the utilization of a direction (delivered rate divided by limit), undefined without a limit. */
export function utilization(d: DirectionRates): number | undefined {
	return d.limit_bps ? d.delivered_bps / d.limit_bps : undefined;
}

/** busiest returns the direction with the highest utilization. */
export function busiest(h: HostRates): DirectionRates | undefined {
	return h.directions.reduce<DirectionRates | undefined>((a, b) => (a === undefined || (utilization(b) ?? 0) > (utilization(a) ?? 0) ? b : a), undefined);
}
