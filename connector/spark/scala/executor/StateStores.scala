package org.apache.spark.executor.bellows

import java.lang.reflect.Field

import scala.util.{Failure, Success, Try}

import org.apache.spark.internal.Logging

/**
 * The state stores of streaming queries are one object of Spark in the JVM. It remembers the driver that it has asked
 * first, for ever: tasks of the next application would ask a driver that is not theirs, and that may have ended. State
 * itself is kept by query, so that several applications may have some.
 */
private[bellows] object StateStores extends Logging {
  private val Name = "org.apache.spark.sql.execution.streaming.state.StateStore$"

  private final class Fields(stores: Any, driver: Field, guard: AnyRef) {
    def clear(): Unit = guard.synchronized(driver.set(stores, null))
  }

  private lazy val fields: Option[Fields] = Try {
    val c = Class.forName(Name)
    def field(name: String): Field = {
      val f = c.getDeclaredField(name)
      f.setAccessible(true)
      f
    }
    val stores = c.getField("MODULE$").get(null)
    new Fields(stores, field("_coordRef"), field("loadedProviders").get(stores))
  } match {
    case Success(found) => Some(found)
    case Failure(e) =>
      logWarning(s"The driver that state stores ask cannot be changed: streaming queries may fail: $e")
      None
  }

  /** Makes tasks ask the driver of the environment that is current by now. */
  def forgetDriver(): Unit = fields.foreach(_.clear())
}
