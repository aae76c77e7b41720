// Types of what the dashboard uses of d3-force.

/** Body is a node: the simulation sets its position and velocity. fx and fy hold it in place. */
export interface Body {
	x?: number;
	y?: number;
	vx?: number;
	vy?: number;
	fx?: number;
	fy?: number;
}

/** Force changes the velocities of the nodes in one tick. */
export interface Force<N extends Body> {
	(alpha: number): void;
	initialize?(nodes: N[], random: () => number): void;
}

export interface Simulation<N extends Body> {
	force(name: string, force: Force<N>): this;
	stop(): this;
	tick(times: number): this;
}

export interface Link<N extends Body> {
	source: N;
	target: N;
}

export interface LinkForce<N extends Body> extends Force<N> {
	distance(of: number | ((link: Link<N>) => number)): this;
	strength(of: number | ((link: Link<N>) => number)): this;
}

export interface ManyBodyForce<N extends Body> extends Force<N> {
	strength(of: number): this;
	distanceMax(of: number): this;
}

export interface PositionForce<N extends Body> extends Force<N> {
	strength(of: number): this;
}

export function forceSimulation<N extends Body>(nodes: N[]): Simulation<N>;
export function forceLink<N extends Body>(links: Link<N>[]): LinkForce<N>;
export function forceManyBody<N extends Body>(): ManyBodyForce<N>;
export function forceCollide<N extends Body>(radius: number): Force<N>;
export function forceX<N extends Body>(x: number): PositionForce<N>;
export function forceY<N extends Body>(y: number): PositionForce<N>;
