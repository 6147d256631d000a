// SPDX-License-Identifier: Apache-2.0

/// Functions of later editions of ECMAScript that scripts use although they avoid the later syntax, for an engine of
/// ECMAScript 5. Each is defined only if the engine does not have it, and none is enumerable. Iterators are objects
/// with `next`; there is no syntax that uses them.
enum Polyfills {
    static let program = #"""
        (function (global) {
        "use strict";

        function define(target, functions) {
          Object.keys(functions).forEach(function (name) {
            if (name in target) return;
            Object.defineProperty(
              target, name, {value: functions[name], writable: true, configurable: true, enumerable: false});
          });
        }

        // MARK: Maps and sets

        // Numbers, texts and the like are found by name, objects one after the other.
        function nameOf(key) {
          var type = typeof key;
          return key !== null && (type === "object" || type === "function") ? null : type + ":" + String(key);
        }

        var GONE = {};

        function placeOf(store, key) {
          var name = nameOf(key);
          if (name === null) return store.keys.indexOf(key);
          return name in store.places ? store.places[name] : -1;
        }

        function put(store, key, value) {
          var place = placeOf(store, key), name = nameOf(key);
          if (place < 0) {
            place = store.keys.push(key) - 1;
            store.size++;
            if (name !== null) store.places[name] = place;
          }
          store.values[place] = value;
        }

        function remove(store, key) {
          var place = placeOf(store, key), name = nameOf(key);
          if (place < 0) return false;
          store.keys[place] = GONE;
          store.values[place] = undefined;
          store.size--;
          if (name !== null) delete store.places[name];
          return true;
        }

        function empty() { return {keys: [], values: [], places: Object.create(null), size: 0}; }

        function iterator(store, item) {
          var place = 0;
          return {
            next: function () {
              while (place < store.keys.length && store.keys[place] === GONE) place++;
              if (place >= store.keys.length) return {value: undefined, done: true};
              return {value: item(store.keys[place], store.values[place++]), done: false};
            }
          };
        }

        function each(items, body) {
          if (items === undefined || items === null) return;
          if (typeof items.next !== "function" && typeof items.entries === "function" && items.length === undefined) {
            items = items instanceof global.Map ? items.entries() : items.values();
          }
          if (typeof items.next === "function") {
            for (var step = items.next(); !step.done; step = items.next()) body(step.value);
          } else {
            for (var i = 0; i < items.length; i++) body(items[i]);
          }
        }

        // A constructor whose objects have a store that is hidden from enumeration.
        function collection(add, functions) {
          function Collection(items) {
            Object.defineProperty(this, "_store", {value: empty(), writable: true});
            var store = this._store;
            each(items, function (item) { add(store, item); });
          }
          define(Collection.prototype, functions);
          define(Collection.prototype, {
            has: function (key) { return placeOf(this._store, key) >= 0; },
            "delete": function (key) { return remove(this._store, key); },
            clear: function () { this._store = empty(); },
            forEach: function (body, self) {
              var store = this._store;
              for (var i = 0; i < store.keys.length; i++) {
                if (store.keys[i] !== GONE) body.call(self, store.values[i], store.keys[i], this);
              }
            },
            keys: function () { return iterator(this._store, function (key) { return key; }); },
            values: function () { return iterator(this._store, function (key, value) { return value; }); },
            entries: function () { return iterator(this._store, function (key, value) { return [key, value]; }); }
          });
          Object.defineProperty(
            Collection.prototype, "size", {get: function () { return this._store.size; }, configurable: true});
          return Collection;
        }

        define(global, {
          Map: collection(function (store, item) { put(store, item[0], item[1]); }, {
            get: function (key) {
              var place = placeOf(this._store, key);
              return place < 0 ? undefined : this._store.values[place];
            },
            set: function (key, value) {
              put(this._store, key, value);
              return this;
            }
          }),
          Set: collection(function (store, item) { put(store, item, item); }, {
            add: function (item) {
              put(this._store, item, item);
              return this;
            }
          })
        });

        // MARK: Arrays

        function indexWhere(list, test, self) {
          for (var i = 0; i < list.length; i++) if (test.call(self, list[i], i, list)) return i;
          return -1;
        }

        define(Array, {
          from: function (items, change, self) {
            var list = [];
            each(items, function (item) { list.push(change ? change.call(self, item, list.length) : item); });
            return list;
          },
          of: function () { return Array.prototype.slice.call(arguments); }
        });

        define(Array.prototype, {
          includes: function (item, start) {
            if (item !== item) return this.some(function (other) { return other !== other; });
            return this.indexOf(item, start) >= 0;
          },
          find: function (test, self) {
            var place = indexWhere(this, test, self);
            return place < 0 ? undefined : this[place];
          },
          findIndex: function (test, self) { return indexWhere(this, test, self); },
          fill: function (value, start, end) {
            var count = this.length;
            function place(index, otherwise) {
              if (index === undefined) return otherwise;
              return index < 0 ? Math.max(count + index, 0) : Math.min(index, count);
            }
            for (var i = place(start, 0), stop = place(end, count); i < stop; i++) this[i] = value;
            return this;
          },
          flat: function (depth) {
            var most = depth === undefined ? 1 : depth;
            return this.reduce(function (list, item) {
              return list.concat(Array.isArray(item) && most > 0 ? item.flat(most - 1) : [item]);
            }, []);
          }
        });

        // MARK: Objects and strings

        define(Object, {
          values: function (object) { return Object.keys(object).map(function (name) { return object[name]; }); },
          entries: function (object) {
            return Object.keys(object).map(function (name) { return [name, object[name]]; });
          },
          assign: function (target) {
            for (var i = 1; i < arguments.length; i++) {
              var source = arguments[i];
              if (source === undefined || source === null) continue;
              Object.keys(source).forEach(function (name) { target[name] = source[name]; });
            }
            return target;
          },
          fromEntries: function (items) {
            var object = {};
            each(items, function (item) { object[item[0]] = item[1]; });
            return object;
          }
        });

        function padding(text, length, unit) {
          unit = unit === undefined ? " " : String(unit);
          var count = length - text.length;
          return count > 0 && unit !== "" ? unit.repeat(Math.ceil(count / unit.length)).slice(0, count) : "";
        }

        define(String.prototype, {
          repeat: function (count) { return Array(count + 1).join(this); },
          includes: function (part, start) { return this.indexOf(part, start) >= 0; },
          startsWith: function (part, start) {
            start = start || 0;
            return this.slice(start, start + String(part).length) === String(part);
          },
          endsWith: function (part, end) {
            var text = this.slice(0, end === undefined ? this.length : end);
            return text.length >= String(part).length && text.slice(text.length - String(part).length) === String(part);
          },
          padStart: function (length, unit) { return padding(this, length, unit) + this; },
          padEnd: function (length, unit) { return this + padding(this, length, unit); },
          trimStart: function () { return this.replace(/^\s+/, ""); },
          trimEnd: function () { return this.replace(/\s+$/, ""); },
          replaceAll: function (part, text) {
            return part instanceof RegExp ? this.replace(part, text) : this.split(part).join(text);
          }
        });
        })(this)
        """#
}
