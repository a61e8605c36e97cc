// SPDX-License-Identifier: MIT
// The bits in three dimensions: one instanced mesh, one draw call. A set bit stands up. Drag or arrow keys turn it; by itself it
// turns only where the reader does not mind motion. A bundle of its own, started when asked for.

import { AmbientLight, BoxGeometry, Color, DirectionalLight, InstancedMesh, Matrix4, MeshLambertMaterial, PerspectiveCamera, Scene, WebGLRenderer } from "three";

const HEIGHT = 340;

class Space {
    constructor(box, words, still, colors) {
        this.renderer = new WebGLRenderer({ antialias: true, alpha: true }); // throws where there is no WebGL
        this.still = still;
        this.colors = colors;
        this.scene = new Scene();
        this.camera = new PerspectiveCamera(45, 1, 0.1, 1000);
        const sun = new DirectionalLight(0xffffff, 2);
        sun.position.set(1, 3, 2);
        this.scene.add(new AmbientLight(0xffffff, 1.5), sun);
        this.angle = 0.6;
        this.tilt = 0.8;
        this.frames = [];
        this.box = box;
        const canvas = this.renderer.domElement;
        const frame = document.createElement("div");
        frame.tabIndex = 0;
        frame.setAttribute("role", "group");
        frame.setAttribute("aria-label", words);
        frame.append(canvas);
        box.replaceChildren(frame);
        canvas.setAttribute("aria-hidden", "true");
        this.steer(frame);
        this.observer = new ResizeObserver(() => this.resize());
        this.observer.observe(box);
        this.resize();
        this.tick = (now) => this.frame(now);
        this.running = requestAnimationFrame(this.tick);
    }

    steer(frame) {
        let from = null;
        frame.addEventListener("pointerdown", (e) => {
            from = [e.clientX, e.clientY];
            frame.setPointerCapture(e.pointerId);
        });
        frame.addEventListener("pointermove", (e) => {
            if (!from) return;
            this.turn((from[0] - e.clientX) * 0.01, (e.clientY - from[1]) * 0.01);
            from = [e.clientX, e.clientY];
        });
        frame.addEventListener("pointerup", () => (from = null));
        frame.addEventListener("keydown", (e) => {
            const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
            if (!by) return;
            e.preventDefault();
            this.turn(...by);
        });
    }

    turn(x, y) {
        this.touched = true;
        this.angle += x;
        this.tilt = Math.min(1.5, Math.max(0.1, this.tilt + y));
        this.dirty = true;
    }

    resize() {
        const width = Math.max(this.box.clientWidth, 64);
        this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
        this.renderer.setSize(width, HEIGHT);
        this.camera.aspect = width / HEIGHT;
        this.camera.updateProjectionMatrix();
        this.dirty = true;
    }

    show(values) {
        if (!this.mesh || this.mesh.count !== values.length) {
            if (this.mesh) {
                this.scene.remove(this.mesh);
                this.mesh.dispose();
            }
            this.mesh = new InstancedMesh(new BoxGeometry(0.8, 1, 0.8), new MeshLambertMaterial(), values.length);
            this.scene.add(this.mesh);
        }
        this.values = values;
        this.side = Math.ceil(Math.sqrt(values.length));
        const at = new Matrix4();
        for (let i = 0; i < values.length; i++) {
            const height = values[i] ? 1 + Math.min(values[i], 15) * 0.4 : 0.2;
            at.makeScale(1, height, 1);
            at.setPosition((i % this.side) - this.side / 2, height / 2, Math.floor(i / this.side) - this.side / 2);
            this.mesh.setMatrixAt(i, at);
        }
        this.mesh.instanceMatrix.needsUpdate = true;
        this.mesh.computeBoundingSphere();
        this.mark(this.marks ?? new Map());
    }

    mark(marks) {
        this.marks = marks;
        const color = new Color();
        for (let i = 0; i < this.values.length; i++) {
            color.set(marks.has(i) ? this.colors[marks.get(i)] : this.values[i] ? this.colors.set : this.colors.clear);
            this.mesh.setColorAt(i, color);
        }
        this.mesh.instanceColor.needsUpdate = true;
        this.dirty = true;
    }

    frame() {
        this.running = requestAnimationFrame(this.tick);
        if (!this.still && !this.touched) {
            this.angle += 0.003;
            this.dirty = true;
        }
        if (!this.dirty || !this.mesh) return;
        const started = performance.now();
        const far = (this.side * 1.35 + 2) / Math.min(1, this.camera.aspect); // all of it, also on a narrow screen
        this.camera.position.set(Math.sin(this.angle) * Math.cos(this.tilt) * far, Math.sin(this.tilt) * far, Math.cos(this.angle) * Math.cos(this.tilt) * far);
        this.camera.lookAt(0, 0, 0);
        this.renderer.render(this.scene, this.camera);
        this.dirty = false;
        this.frames.push(performance.now() - started);
        if (this.frames.length > 240) this.frames.shift();
    }

    stop() {
        cancelAnimationFrame(this.running);
        this.observer.disconnect();
        this.renderer.dispose();
        this.renderer.forceContextLoss();
        this.box.replaceChildren();
    }
}

globalThis.tamizSpace = (box, words, still, colors) => new Space(box, words, still, colors);
