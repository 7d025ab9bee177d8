package org.apache.spark.executor.bellows

import org.apache.spark.launcher.JavaModuleOptions

/** Prints the options of Java that this Spark needs. */
object JavaOptions {
  def main(args: Array[String]): Unit = println(JavaModuleOptions.defaultModuleOptions())
}
